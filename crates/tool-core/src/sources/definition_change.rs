use std::{fmt, sync::Arc};

use crate::Feature;

/// Difference of two definitions in one place, for people. Its texts are shortened and escaped: they contain no character
/// that hides or moves text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct FieldChange {
    /// Place, as a JSON Pointer (RFC 6901), such as `/inputSchema/properties/path`.
    pub path: String,
    /// Value in the accepted definition; `None` if it had none.
    pub before: Option<String>,
    /// Value in the present definition; `None` if it has none.
    pub after: Option<String>,
}

impl FieldChange {
    /// Creates the difference in one place.
    #[must_use]
    pub fn new(path: impl Into<String>, before: Option<String>, after: Option<String>) -> Self {
        Self {
            path: path.into(),
            before,
            after,
        }
    }
}

impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "/" } else { &self.path };
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => write!(f, "`{path}`: {before} -> {after}"),
            (None, Some(after)) => write!(f, "`{path}`: added {after}"),
            (Some(before), None) => write!(f, "`{path}`: removed {before}"),
            (None, None) => write!(f, "`{path}`"),
        }
    }
}

/// Change of state of the definition of a tool, prompt or resource.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DefinitionChange {
    /// Name of the source.
    pub source: Arc<str>,
    /// Kind of the entry.
    pub feature: Feature,
    /// Name of the entry, as agents see it; the URI of a resource or template.
    pub name: Arc<str>,
    /// SHA-256 of the definition's canonical form.
    pub digest: [u8; 32],
    /// State of the definition now.
    pub state: DefinitionState,
    /// Differences from the accepted definition, as far as that is known. Secrets are hidden.
    pub changes: Vec<FieldChange>,
}

/// State of the definition of a tool, prompt or resource.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DefinitionState {
    /// It is withheld: none was accepted under its name.
    New,
    /// It is withheld: it differs from the accepted one.
    Changed,
    /// An operator accepted it.
    Accepted {
        /// Name of the operator.
        by: Arc<str>,
    },
}

impl DefinitionState {
    /// Returns the state as a word for logs and lists.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Changed => "changed",
            Self::Accepted { .. } => "accepted",
        }
    }
}

impl DefinitionChange {
    /// Creates the change of the definition of an entry of this source, with this digest.
    #[must_use]
    pub fn new(
        source: impl Into<Arc<str>>,
        feature: Feature,
        name: impl Into<Arc<str>>,
        digest: [u8; 32],
        state: DefinitionState,
    ) -> Self {
        Self {
            source: source.into(),
            feature,
            name: name.into(),
            digest,
            state,
            changes: Vec::new(),
        }
    }

    /// Sets the differences from the accepted definition.
    #[must_use]
    pub fn with_changes(mut self, changes: Vec<FieldChange>) -> Self {
        self.changes = changes;
        self
    }
}
