use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{Descriptor, Overrides, Setting};
use tool_settings::{Field, Section, SectionContext, SectionKeys, ToolSettings};

use crate::IntentLayer;

/// Settings of the record that is written before a call is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct IntentSettings {
    /// `true` if calls that must not run twice are recorded before they are sent. Default: `false`.
    pub is_on: bool,
}

impl IntentSettings {
    /// Turns the records on or off.
    #[must_use]
    pub const fn new(is_on: bool) -> Self {
        Self { is_on }
    }
}

impl Setting for IntentSettings {
    fn settled(&self, _: &Descriptor) -> Option<Self> {
        Some(*self).filter(|settings| settings.is_on)
    }
}

impl IntentLayer {
    /// The section `intent`.
    #[must_use]
    pub fn section() -> Section {
        Section::new()
            .for_tools(SectionKeys::new(|cx, keys: Keys, tool: &mut ToolSettings| {
                read(cx, keys, &mut tool.overrides);
            }))
            .for_servers(SectionKeys::new(read).in_group(1))
            .for_defaults(SectionKeys::new(read).in_group(4))
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Keys {
    /// Records calls that must not run twice in the store before they are sent, so that none is lost if the gateway dies. If the
    /// record cannot be written, the call is not made. Each call waits for a commit of the store; without a store, it has no
    /// effect. Default: false.
    intent: Field<bool>,
}

fn read(_: SectionContext<'_>, keys: Keys, overrides: &mut Overrides) {
    if let Some(is_on) = keys.intent.get() {
        overrides.set(IntentSettings { is_on });
    }
}
