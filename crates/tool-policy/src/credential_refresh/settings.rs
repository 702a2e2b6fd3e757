use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{Descriptor, Overrides, Setting};
use tool_settings::{Field, Period, Section, SectionKeys, ToolSettings};

use crate::CredentialRefreshLayer;

/// Settings of tools whose credentials are rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CredentialSettings {
    /// Time for which a tool is disabled after its credentials are rejected. Zero: the tool is not disabled.
    pub disabled_for: Duration,
}

impl Default for CredentialSettings {
    fn default() -> Self {
        Self {
            disabled_for: Duration::from_secs(5 * 60),
        }
    }
}

impl Setting for CredentialSettings {
    fn settled(&self, _: &Descriptor) -> Option<Self> {
        Some(*self).filter(|settings| *settings != Self::default())
    }
}

impl CredentialRefreshLayer {
    /// The section `disabled_for`.
    #[must_use]
    pub fn section() -> Section {
        Section::new()
            .for_tools(SectionKeys::new(|_, keys: ToolKeys, tool: &mut ToolSettings| {
                read(keys.disabled_for, &mut tool.overrides);
            }))
            .for_servers(
                SectionKeys::new(|_, keys: ServerKeys, overrides| read(keys.disabled_for, overrides))
                    .in_group(1),
            )
            .for_defaults(
                SectionKeys::new(|_, keys: DefaultKeys, overrides| read(keys.disabled_for, overrides))
                    .in_group(2),
            )
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ToolKeys {
    /// Time for which it is switched off when its credentials are refused and there are no others, instead of the one
    /// in `defaults`.
    disabled_for: Field<Period>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ServerKeys {
    /// Time for which each of its tools is switched off when the credentials are refused and there are no others,
    /// instead of the one in `defaults`.
    disabled_for: Field<Period>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DefaultKeys {
    /// Time for which a tool is switched off when its credentials are refused and there are no others; 5m by default.
    /// With 0s it is not.
    disabled_for: Field<Period>,
}

fn read(field: Field<Period>, overrides: &mut Overrides) {
    if let Some(Period(disabled_for)) = field.get() {
        overrides.set(CredentialSettings { disabled_for });
    }
}
