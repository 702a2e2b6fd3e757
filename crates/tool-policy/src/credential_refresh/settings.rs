use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{Descriptor, Overrides, Setting};
use tool_settings::{Field, Period, Section, SectionKeys, ToolSettings};

use crate::CredentialRefreshLayer;

/// Settings of tools whose credentials are rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
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

impl CredentialSettings {
    /// Sets the time for which a tool is disabled; with zero, it is not disabled.
    #[must_use]
    pub const fn new(disabled_for: Duration) -> Self {
        Self { disabled_for }
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
    /// Time for which the tool is disabled after its credentials are rejected and no others are available. Overrides
    /// `defaults`.
    disabled_for: Field<Period>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ServerKeys {
    /// Time for which each of the server's tools is disabled after the credentials are rejected and no others are
    /// available. Overrides `defaults`.
    disabled_for: Field<Period>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DefaultKeys {
    /// Time for which a tool is disabled after its credentials are rejected and no others are available. With 0s it
    /// is not disabled. Default: 5m.
    disabled_for: Field<Period>,
}

fn read(field: Field<Period>, overrides: &mut Overrides) {
    if let Some(Period(disabled_for)) = field.get() {
        overrides.set(CredentialSettings { disabled_for });
    }
}
