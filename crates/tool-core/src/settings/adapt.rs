use std::fmt;

use raw_json::RawJson;
use serde_json::json;

/// What is done with arguments that are not quite what a tool's schema asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ArgumentHandling {
    /// They are refused.
    #[default]
    Strict,
    /// They are converted where the schema asks for another type and nothing is lost: `"5"` becomes 5. Arguments that
    /// fit as they are stay as they are.
    Coerce,
    /// They are converted, and what is too much is taken away: unknown members, characters that only deceive, whatever is
    /// beyond a length or a bound.
    Sanitize,
}

/// Arguments that were made to fit, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdaptedArguments {
    /// The arguments after the changes. What did not change has its own bytes.
    pub arguments: RawJson,
    /// What was changed, in the order of the text.
    pub changes: Vec<Change>,
}

/// One change to the arguments of a call. It tells no value, so it may be logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where, as a JSON Pointer (RFC 6901).
    pub path: String,
    /// What was done.
    pub kind: ChangeKind,
    /// From what to what, such as `string to integer`.
    pub detail: String,
}

/// What can be done to an argument to make it fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChangeKind {
    /// It has another type.
    Coerced,
    /// It was left out.
    Dropped,
    /// It was cut.
    Truncated,
    /// It was moved to the nearest bound.
    Clamped,
    /// Characters were taken out that only deceive.
    Cleaned,
    /// It was absent and has the default of the schema.
    Filled,
}

impl ArgumentHandling {
    /// The key under which a reply's `_meta` tells what was changed.
    pub const META_KEY: &'static str = "dev.toolplane/arguments";
}

impl ChangeKind {
    /// The word for it, such as `coerced`.
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
    /// How many changes are told one by one.
    const MAX_TOLD: usize = 20;

    /// What was changed, for the caller: `{"changes": [{"path", "change", "detail"}], "more": 3}`.
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

impl fmt::Display for AdaptedArguments {
    /// What was changed, in words.
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
