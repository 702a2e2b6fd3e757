use std::{fmt, str::FromStr};

/// Revision of the protocol, ordered by date.
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

/// Family of revisions, told apart by how a connection is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// Connections begin with `initialize` and have state: revisions up to 2025-11-25.
    Legacy,
    /// Every request stands alone and describes its client in `_meta`: revisions from 2026-07-28.
    Modern,
}

/// Error of a text that is not a known revision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol revision `{0}`")]
pub struct UnknownRevision(String);

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: &'static [Self] = &[
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];
    /// Newest revision.
    pub const LATEST: Self = Self::V2026_07_28;
    /// Newest revision with `initialize`.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;
    /// Revision of a legacy HTTP request without a version header.
    pub const WITHOUT_HEADER: Self = Self::V2025_03_26;

    /// Returns the revision as it is written in messages.
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

    /// Returns the era of the revision.
    #[must_use]
    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// Returns `true` if both sides may send batches. One revision requires support for them; earlier revisions do not
    /// mention them, later ones forbid them.
    #[must_use]
    pub const fn supports_batches(self) -> bool {
        matches!(self, Self::V2025_03_26)
    }

    /// Returns the revision that a server answers `initialize` with: the requested one if it is known and has `initialize`,
    /// otherwise the newest with `initialize`.
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
        let found = Self::ALL
            .iter()
            .copied()
            .find(|revision| revision.as_str() == text);
        found.ok_or_else(|| UnknownRevision(text.chars().take(64).collect()))
    }
}
