use std::fmt;

use raw_json::RawJson;

/// Handling of arguments that do not match a tool's schema exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ArgumentHandling {
    /// Rejects them.
    #[default]
    Strict,
    /// Converts them where the schema asks for another type and no information is lost: `"5"` becomes 5. Arguments
    /// that match are unchanged.
    Coerce,
    /// Converts them and removes what the schema does not allow: unknown members, deceptive characters, and whatever
    /// exceeds a length or a bound.
    Sanitize,
}

/// Arguments adapted to the schema, with the list of changes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdaptedArguments {
    /// The arguments after the changes. Unchanged parts keep their original bytes.
    pub arguments: RawJson,
    /// Changes, in the order of the text.
    pub changes: Vec<Change>,
}

impl AdaptedArguments {
    /// Creates the arguments that result from these changes.
    #[must_use]
    pub fn new(arguments: RawJson, changes: Vec<Change>) -> Self {
        Self { arguments, changes }
    }
}

/// One change to the arguments of a call. It contains no values, so it may be logged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// Position of the change, as a JSON Pointer (RFC 6901).
    pub path: String,
    /// Kind of the change.
    pub kind: ChangeKind,
    /// Details of the change, such as `string to integer`.
    pub detail: String,
}

impl Change {
    /// Creates a change at a JSON Pointer (RFC 6901).
    #[must_use]
    pub fn new(path: impl Into<String>, kind: ChangeKind, detail: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            kind,
            detail: detail.into(),
        }
    }

    fn record(&self) -> RawJson {
        RawJson::from_members(&[
            ("path", RawJson::from(self.path.as_str())),
            ("change", RawJson::from(self.kind.as_str())),
            ("detail", RawJson::from(self.detail.as_str())),
        ])
    }
}

/// Kind of a change that makes an argument match.
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
    /// Key under which a reply's `_meta` reports the changes.
    pub const META_KEY: &'static str = "dev.toolplane/arguments";
}

impl ChangeKind {
    /// Returns the name of the kind, such as `coerced`.
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

impl AdaptedArguments {
    /// Maximum number of changes that are reported one by one.
    const MAX_TOLD: usize = 20;

    /// Returns the report of the changes for the caller: `{"changes": [{"path", "change", "detail"}], "more": 3}`.
    #[must_use]
    pub fn report(&self) -> RawJson {
        let told: Vec<RawJson> = self
            .changes
            .iter()
            .take(Self::MAX_TOLD)
            .map(Change::record)
            .collect();
        let mut report = vec![("changes", RawJson::from_items(&told))];
        let more = self.changes.len().saturating_sub(Self::MAX_TOLD);
        if more > 0 {
            report.push(("more", RawJson::from(more as u64)));
        }
        RawJson::from_members(&report)
    }
}

impl fmt::Display for AdaptedArguments {
    /// Describes the changes in words.
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
