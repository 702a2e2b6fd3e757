use std::fmt;

use crate::Feature;

/// Policy for definitions with suspicious text: hidden characters, comments, markup, and sentences that instruct a
/// model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DefinitionPolicy {
    /// Offers the definition byte for byte, and warns operators.
    #[default]
    Pass,
    /// Removes hidden text from titles, descriptions and examples. Omits an entry with hidden text elsewhere, such as
    /// in the name of an argument.
    Clean,
    /// Omits the entry.
    Withhold,
}

/// Mode of the pins of a source: the definitions that are offered, depending on those that were accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PinMode {
    /// Every definition is offered, whatever was accepted.
    Off,
    /// A definition without a pin is accepted at its first use. A changed one is withheld until an operator accepts it.
    #[default]
    FirstUse,
    /// Only accepted definitions are offered. A new or changed one is withheld until an operator accepts it.
    Locked,
}

impl PinMode {
    /// Returns the word for settings and lists.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::FirstUse => "first_use",
            Self::Locked => "locked",
        }
    }
}

/// Limits of the lists of one server. Entries beyond them are omitted with a [`ListWarning`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListLimits {
    /// Maximum number of tools.
    pub tools: usize,
    /// Maximum number of prompts.
    pub prompts: usize,
    /// Maximum number of resources, and of resource templates.
    pub resources: usize,
    /// Maximum number of pages of one list.
    pub pages: usize,
    /// Maximum size of a list, in bytes.
    pub bytes: usize,
    /// Maximum size of a definition, in bytes.
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
    /// Returns the maximum number of entries of a kind.
    #[must_use]
    pub fn entries(&self, feature: Feature) -> usize {
        match feature {
            Feature::Tool => self.tools,
            Feature::Prompt => self.prompts,
            _ => self.resources,
        }
    }
}

/// Warning for operators about a list of a source. Its texts are escaped: they contain no character that hides or
/// moves text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ListWarning {
    /// Kind of the entry or list; `None` if the warning is about the source.
    pub feature: Option<Feature>,
    /// Name of the entry, as agents see it; `None` if the warning is about the whole list.
    pub name: Option<String>,
    /// Stable name of the kind of warning, such as `bidi_controls`.
    pub kind: &'static str,
    /// Warning: a lower-case fragment.
    pub message: String,
}

impl ListWarning {
    /// Creates a warning about a list or one of its entries.
    #[must_use]
    pub fn new(
        feature: Option<Feature>,
        name: Option<String>,
        kind: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            feature,
            name,
            kind,
            message: message.into(),
        }
    }
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
