use std::fmt;

use raw_json::RawJson;
use serde_json::json;

/// Handling of arguments that do not fit a tool's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ArgumentHandling {
    /// Refuses them.
    #[default]
    Strict,
    /// Converts them where the schema asks for another type and no information is lost: `"5"` becomes 5. Arguments
    /// that fit stay as they are.
    Coerce,
    /// Converts them, and removes the surplus: unknown members, deceptive characters, and everything beyond a length
    /// or a bound.
    Sanitize,
}

/// Arguments that were made to fit, and the changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapted {
    /// The arguments after the changes. Unchanged parts keep their bytes.
    pub arguments: RawJson,
    /// The changes, in the order of the text.
    pub changes: Vec<Change>,
}

/// One change to the arguments of a call. It holds no value, so it may be logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Place of the change, as a JSON Pointer (RFC 6901).
    pub path: String,
    /// Kind of the change.
    pub kind: ChangeKind,
    /// Both sides of the change, such as `string to integer`.
    pub detail: String,
}

/// Kinds of changes that make an argument fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChangeKind {
    /// The argument was converted to another type.
    Coerced,
    /// The argument was removed.
    Dropped,
    /// The argument was truncated.
    Truncated,
    /// The argument was moved to the nearest bound.
    Clamped,
    /// Deceptive characters were removed.
    Cleaned,
    /// The argument was absent and got the default of the schema.
    Filled,
}

impl ArgumentHandling {
    /// Key of a reply's `_meta` that holds the changes.
    pub const META_KEY: &'static str = "dev.toolplane/arguments";
}

impl ChangeKind {
    /// Returns the word for it, such as `coerced`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Coerced => "coerced",
            Self::Dropped => "dropped",
            Self::Truncated => "truncated",
            Self::Clamped => "clamped",
            Self::Cleaned => "cleaned",
            Self::Filled => "filled",
        }
    }
}

impl Adapted {
    /// Maximum number of changes that are listed one by one.
    const MAX_TOLD: usize = 20;

    /// Returns the changes for the caller: `{"changes": [{"path", "change", "detail"}], "more": 3}`.
    #[must_use]
    pub fn report(&self) -> RawJson {
        let told: Vec<_> = self
            .changes
            .iter()
            .take(Self::MAX_TOLD)
            .map(|change| json!({"path": change.path, "change": change.kind.as_str(), "detail": change.detail}))
            .collect();
        let mut report = json!({"changes": told});
        let more = self.changes.len().saturating_sub(Self::MAX_TOLD);
        if more > 0 {
            report["more"] = more.into();
        }
        RawJson::from(report)
    }
}

impl fmt::Display for Adapted {
    /// Writes the changes in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, change) in self.changes.iter().take(Self::MAX_TOLD).enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(
                f,
                "{separator}`{}` was {} ({})",
                change.path,
                change.kind.as_str(),
                change.detail
            )?;
        }
        let more = self.changes.len().saturating_sub(Self::MAX_TOLD);
        if more > 0 {
            write!(f, ", and {more} more")?;
        }
        Ok(())
    }
}
