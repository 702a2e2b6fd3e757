use std::fmt;

/// Origin of the answer to a call of a tool with a cache. Shared by the cache, events and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheOutcome {
    /// It was kept and is fresh.
    Hit,
    /// It was kept and is no longer fresh.
    Stale,
    /// It was fetched for this call.
    Miss,
    /// It was fetched for another call at the same time.
    Shared,
    /// The call had to be made for itself.
    Bypassed,
}

impl CacheOutcome {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Hit, Self::Stale, Self::Miss, Self::Shared, Self::Bypassed];

    /// Returns the word for it in replies, records and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Stale => "stale",
            Self::Miss => "miss",
            Self::Shared => "shared",
            Self::Bypassed => "bypassed",
        }
    }
}

impl fmt::Display for CacheOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
