//! Settings for the lists of servers.

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{DefinitionPolicy, ListLimits, PinMode};
use tool_settings::{ByteSize, Field, NodeId};

use crate::document::place::Cx;

/// Handling of suspicious definitions of servers: hidden characters, comments and markup, and sentences that give
/// orders to a model. `pass` offers them byte for byte with a warning to operators. `clean` removes hidden text from
/// titles, descriptions and examples, and leaves out definitions with hidden text elsewhere. `withhold` leaves them
/// out.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Definitions")]
pub(crate) enum DefinitionsWord {
    Pass,
    Clean,
    Withhold,
}

impl From<DefinitionsWord> for DefinitionPolicy {
    fn from(word: DefinitionsWord) -> Self {
        match word {
            DefinitionsWord::Pass => Self::Pass,
            DefinitionsWord::Clean => Self::Clean,
            DefinitionsWord::Withhold => Self::Withhold,
        }
    }
}

/// Pins of the definitions of tools, prompts and resources of servers. `off` offers every definition. `first_use` accepts
/// the first definition that a server lists, and withholds a changed one until it is accepted with
/// `toolplane tools accept`. `locked` offers only the definitions of `toolplane.lock`, and those that were accepted.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Pin")]
pub(crate) enum PinWord {
    Off,
    FirstUse,
    Locked,
}

impl From<PinWord> for PinMode {
    fn from(word: PinWord) -> Self {
        match word {
            PinWord::Off => Self::Off,
            PinWord::FirstUse => Self::FirstUse,
            PinWord::Locked => Self::Locked,
        }
    }
}

/// Limits of a server's lists. Entries beyond them are left out, and operators are warned.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ListLimits")]
pub(crate) struct ListLimitsBody {
    /// Maximum number of tools of a server; 2000 by default.
    tools: Field<usize>,
    /// Maximum number of prompts of a server; 2000 by default.
    prompts: Field<usize>,
    /// Maximum number of resources of a server, and of resource templates; 10000 by default.
    resources: Field<usize>,
    /// Maximum number of pages of one list; 1000 by default.
    pages: Field<usize>,
    /// Maximum size of one list, with all of its pages; 16MiB by default.
    bytes: Field<ByteSize>,
    /// Maximum size of the definition of a tool, prompt or resource; 256KiB by default.
    definition_bytes: Field<ByteSize>,
}

/// Limits of lists, as far as they are given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListLimitsSpec {
    /// The most tools.
    pub tools: Option<usize>,
    /// The most prompts.
    pub prompts: Option<usize>,
    /// The most resources, and the most resource templates.
    pub resources: Option<usize>,
    /// The most pages of one list.
    pub pages: Option<usize>,
    /// The largest list, in bytes.
    pub bytes: Option<usize>,
    /// The largest definition, in bytes.
    pub definition_bytes: Option<usize>,
}

impl ListLimitsSpec {
    /// These limits, and those of `others` where there is none here.
    #[must_use]
    pub fn or(&self, others: ListLimits) -> ListLimits {
        let mut limits = others;
        limits.tools = self.tools.unwrap_or(limits.tools);
        limits.prompts = self.prompts.unwrap_or(limits.prompts);
        limits.resources = self.resources.unwrap_or(limits.resources);
        limits.pages = self.pages.unwrap_or(limits.pages);
        limits.bytes = self.bytes.unwrap_or(limits.bytes);
        limits.definition_bytes = self.definition_bytes.unwrap_or(limits.definition_bytes);
        limits
    }
}

/// Reads the limits of lists.
pub(crate) fn list_limits(cx: Cx<'_>, field: Field<ListLimitsBody>) -> ListLimitsSpec {
    let body = field.get().unwrap_or_default();
    let number = |field: Field<usize>| {
        let (at, number) = field.located()?;
        at_least_one(cx, at, number)
    };
    let bytes = |field: Field<ByteSize>| {
        let (at, ByteSize(bytes)) = field.located()?;
        at_least_one(cx, at, bytes)
    };
    ListLimitsSpec {
        tools: number(body.tools),
        prompts: number(body.prompts),
        resources: number(body.resources),
        pages: number(body.pages),
        bytes: bytes(body.bytes),
        definition_bytes: bytes(body.definition_bytes),
    }
}

fn at_least_one(cx: Cx<'_>, at: NodeId, number: usize) -> Option<usize> {
    if number == 0 {
        let hint = "use `exclude: [\"*\"]` to take nothing from a server";
        cx.error(at, "a limit of lists is at least 1", hint);
        return None;
    }
    Some(number)
}
