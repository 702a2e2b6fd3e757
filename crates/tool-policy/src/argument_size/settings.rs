use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{Overrides, Setting};
use tool_settings::{ByteSize, Field, Section, SectionContext, SectionKeys, ToolSettings};

use crate::ArgumentSizeLayer;

/// Maximum size of a call's arguments, in bytes of their JSON text as the caller sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxArgumentsBytes(pub usize);

impl Setting for MaxArgumentsBytes {}

impl ArgumentSizeLayer {
    /// The section `max_arguments_bytes`.
    #[must_use]
    pub fn section() -> Section {
        Section::new()
            .for_tools(SectionKeys::new(|cx, keys: NearKeys, tool: &mut ToolSettings| {
                read(cx, keys.max_arguments_bytes, &mut tool.overrides);
            }))
            .for_servers(SectionKeys::new(|cx, keys: NearKeys, overrides| {
                read(cx, keys.max_arguments_bytes, overrides);
            }))
            .for_defaults(SectionKeys::new(|cx, keys: DefaultKeys, overrides| {
                read(cx, keys.max_arguments_bytes, overrides);
            }))
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct NearKeys {
    /// Maximum size of a call's arguments, such as `64KiB`. Overrides `defaults`.
    max_arguments_bytes: Field<ByteSize>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DefaultKeys {
    /// Maximum size of a call's arguments, such as `64KiB`. Servers and tools can override it. Default: no limit.
    max_arguments_bytes: Field<ByteSize>,
}

fn read(cx: SectionContext<'_>, field: Field<ByteSize>, overrides: &mut Overrides) {
    let Some((at, ByteSize(limit))) = field.located() else {
        return;
    };
    if limit < "{}".len() {
        cx.error(
            at,
            "every call would be refused: even `{}` has 2 bytes",
            "leave it out for no limit",
        );
    }
    overrides.set(MaxArgumentsBytes(limit));
}
