use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{Descriptor, Overrides, Setting};
use tool_settings::{Field, Section, SectionKeys, ToolSettings};

use crate::ApprovalLayer;

/// The operator's approval rule for the calls of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ApprovalRule {
    /// Each call requires an approval.
    Required,
    /// Each call requires an approval, unless its caller has this permission.
    UnlessPermitted(&'static str),
    /// No approval is required, even if the server or the defaults require one.
    Never,
}

impl Setting for ApprovalRule {
    fn settled(&self, _: &Descriptor) -> Option<Self> {
        Some(*self).filter(|rule| *rule != Self::Never)
    }
}

impl ApprovalLayer {
    /// The section `approval` of tools, servers and the defaults.
    #[must_use]
    pub fn section() -> Section {
        Section::new()
            .for_tools(SectionKeys::new(|_, keys: ToolKeys, tool: &mut ToolSettings| {
                read(keys.approval, &mut tool.overrides);
            }))
            .for_servers(SectionKeys::new(|_, keys: ServerKeys, overrides| {
                read(keys.approval, overrides);
            }))
            .for_defaults(SectionKeys::new(|_, keys: DefaultKeys, overrides| {
                read(keys.approval, overrides);
            }))
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ToolKeys {
    /// Approval rule for each call. Overrides `defaults`.
    approval: Field<ApprovalWord>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ServerKeys {
    /// Approval rule for each call of the server's tools. Overrides `defaults`.
    approval: Field<ApprovalWord>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DefaultKeys {
    /// Approval rule for each call. Servers and tools can override it. Default: no approval is required.
    approval: Field<ApprovalWord>,
}

/// Approval rule for each call.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ApprovalRule")]
enum ApprovalWord {
    /// Each call must be approved.
    Required,
    /// No approval is required, unless the policy's `approval` requires one.
    Never,
}

fn read(field: Field<ApprovalWord>, overrides: &mut Overrides) {
    if let Some(word) = field.get() {
        overrides.set(match word {
            ApprovalWord::Required => ApprovalRule::Required,
            ApprovalWord::Never => ApprovalRule::Never,
        });
    }
}
