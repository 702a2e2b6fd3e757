use std::{fmt, str::FromStr};

/// A revision of the protocol, in the order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names of the revisions")]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

/// How a revision opens a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// With `initialize`, and state that belongs to the connection: up to 2025-11-25.
    Legacy,
    /// Not at all: every request says what it needs in `_meta`. From 2026-07-28.
    Modern,
}

/// A text that is no revision known here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol revision `{0}`")]
pub struct UnknownRevision(String);

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];
    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;
    /// The newest revision that has `initialize`.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;
    /// What a legacy HTTP request without a version header speaks.
    pub const WITHOUT_HEADER: Self = Self::V2025_03_26;

    /// The revision as it is written in messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era that the revision belongs to.
    #[must_use]
    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// Whether both sides may send several messages in one array: one revision demands that they are taken, those before
    /// it are silent, and those after it forbid them.
    #[must_use]
    pub const fn supports_batches(self) -> bool {
        matches!(self, Self::V2025_03_26)
    }

    /// The revision that a server answers `initialize` with: the one asked for if it has `initialize` and is known,
    /// else the newest of that kind.
    #[must_use]
    pub fn negotiate(asked: &str) -> Self {
        match asked.parse::<Self>() {
            Ok(revision) if revision.era() == Era::Legacy => revision,
            _ => Self::LATEST_LEGACY,
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|revision| revision.as_str() == text);
        found.ok_or_else(|| UnknownRevision(text.chars().take(64).collect()))
    }
}
