use std::fmt;

use crate::Feature;

/// Decides what is done with a definition that holds suspicious text: hidden characters, comments and markup, and
/// sentences that give orders to a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DefinitionPolicy {
    /// It is offered byte for byte, with a warning to operators.
    #[default]
    Pass,
    /// Hidden text is removed from titles, descriptions and examples. An entry that has hidden text elsewhere, such as
    /// in the name of an argument, is left out.
    Clean,
    /// The entry is left out.
    Withhold,
}

/// Limits of the lists of one server. Entries beyond them are left out with a [`ListWarning`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListLimits {
    /// The most tools.
    pub tools: usize,
    /// The most prompts.
    pub prompts: usize,
    /// The most resources, and the most resource templates.
    pub resources: usize,
    /// The most pages of one list.
    pub pages: usize,
    /// The largest list, in bytes.
    pub bytes: usize,
    /// The largest definition, in bytes.
    pub definition_bytes: usize,
}

impl Default for ListLimits {
    fn default() -> Self {
        Self {
            tools: 2000,
            prompts: 2000,
            resources: 10_000,
            pages: 1000,
            bytes: 16 << 20,
            definition_bytes: 256 << 10,
        }
    }
}

impl ListLimits {
    /// The most entries of a kind.
    #[must_use]
    pub fn entries(&self, feature: Feature) -> usize {
        match feature {
            Feature::Tool => self.tools,
            Feature::Prompt => self.prompts,
            _ => self.resources,
        }
    }
}

/// Something that operators should know of what a source lists. Its texts are escaped: they show no foreign character
/// that hides or moves text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ListWarning {
    /// The kind of entry or list; absent if the source itself is meant.
    pub feature: Option<Feature>,
    /// The name of the entry as agents see it; absent if the whole list is meant.
    pub name: Option<String>,
    /// Stable name of the kind of warning, such as `bidi_controls`.
    pub kind: &'static str,
    /// The warning: a lower-case fragment.
    pub message: String,
}

impl fmt::Display for ListWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.feature, &self.name) {
            (Some(feature), Some(name)) => write!(f, "{} `{name}`: {}", feature.as_str(), self.message),
            (Some(feature), None) => write!(f, "list of {}s: {}", feature.as_str(), self.message),
            (None, _) => f.write_str(&self.message),
        }
    }
}
