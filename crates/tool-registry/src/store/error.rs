use std::sync::Arc;

use semver::Version;

use super::InvalidVersionRequest;

/// Error of a store.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The tool was changed by somebody else meanwhile.
    #[error("`{tool}` was changed by somebody else meanwhile")]
    Conflict {
        /// Name of the tool.
        tool: String,
    },
    /// A stored value is not readable.
    #[error("the store holds {what} that cannot be read: {reason}")]
    Corrupt {
        /// The value.
        what: String,
        /// Reason.
        reason: String,
    },
    /// The store was written by a newer program.
    #[error("the store has schema {found}, and this program knows {known}: use a newer program")]
    Newer {
        /// Version of the stored schema.
        found: i64,
        /// Newest version that this program knows.
        known: i64,
    },
    /// The store does not work.
    #[error("the store `{store}` does not work: {message}")]
    Unavailable {
        /// Name of the store.
        store: String,
        /// Failure: a lower-case fragment.
        message: String,
        /// Cause.
        #[source]
        source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    },
}

/// Error of a change of versions that is against the rules, or that the store could not make.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// There is no such tool in the store.
    #[error("there is no tool `{tool}` in the store")]
    UnknownTool {
        /// Name of the tool.
        tool: String,
    },
    /// There is no such version.
    #[error("`{tool}` has no version `{version}`; there are {known}")]
    UnknownVersion {
        /// Name of the tool.
        tool: String,
        /// Requested version.
        version: String,
        /// Versions that exist.
        known: String,
    },
    /// A published version never changes.
    #[error("`{tool}@{version}` is published with other content, and a published version never changes")]
    Immutable {
        /// Name of the tool.
        tool: String,
        /// The version.
        version: Version,
    },
    /// The number is not greater than that of the newest version.
    #[error("`{tool}@{version}` is not newer than `{newest}`")]
    NotNewer {
        /// Name of the tool.
        tool: String,
        /// The version.
        version: Version,
        /// Newest version of the same line.
        newest: Version,
    },
    /// The change needs a greater version number.
    #[error("`{}@{}` does not accept all that `{}` did ({}): the version must be at least {}", .0.tool, .0.version, .0.before, .0.reason, .0.needed)]
    Breaking(Box<IncompatibleVersion>),
    /// The compatibility of the change is not proven.
    #[error("it is not proven that `{}@{}` accepts all that `{}` did ({}): the version must be at least {}, or declared compatible", .0.tool, .0.version, .0.before, .0.reason, .0.needed)]
    Unproven(Box<IncompatibleVersion>),
    /// The version is in a state that does not allow the change.
    #[error("`{tool}@{version}` is {state} and cannot be {change}")]
    State {
        /// Name of the tool.
        tool: String,
        /// The version.
        version: Version,
        /// Its state.
        state: &'static str,
        /// The change.
        change: &'static str,
    },
    /// There is no former version to go back to.
    #[error("`{tool}` has no former latest version to go back to")]
    NoFormer {
        /// Name of the tool.
        tool: String,
    },
    /// A name, a path or a manifest is not usable.
    #[error("{0}")]
    Invalid(String),
    /// The text is no request for a version.
    #[error(transparent)]
    Request(#[from] InvalidVersionRequest),
    /// The store could not make the change.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A version whose number does not allow its changes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct IncompatibleVersion {
    /// Name of the tool.
    pub tool: String,
    /// The version.
    pub version: Version,
    /// Version that it is compared with.
    pub before: Version,
    /// Changes that break callers, or the part that is not proven.
    pub reason: String,
    /// Smallest version that may have these changes.
    pub needed: Version,
}

impl StoreError {
    /// Creates the error of a store that does not work.
    #[must_use]
    pub fn unavailable(store: &str, message: impl Into<String>) -> Self {
        Self::Unavailable {
            store: store.to_owned(),
            message: message.into(),
            source: None,
        }
    }

    /// Creates the error of a stored value that cannot be read.
    #[must_use]
    pub fn corrupt(what: impl Into<String>, reason: impl std::fmt::Display) -> Self {
        Self::Corrupt {
            what: what.into(),
            reason: reason.to_string(),
        }
    }
}
