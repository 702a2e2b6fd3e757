use std::fmt;

/// Source of the reply to a call of a tool with a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheOutcome {
    /// The reply was cached and is fresh.
    Hit,
    /// The reply was cached and is stale.
    Stale,
    /// The cached reply of an earlier call that means the same in other words.
    Semantic,
    /// The reply was fetched for this call.
    Miss,
    /// The reply was fetched for another concurrent call.
    Shared,
    /// The call bypassed the cache and was executed on its own.
    Bypassed,
}

impl CacheOutcome {
    /// All outcomes.
    pub const ALL: &'static [Self] = &[
        Self::Hit,
        Self::Stale,
        Self::Semantic,
        Self::Miss,
        Self::Shared,
        Self::Bypassed,
    ];

    /// Returns the name of the outcome in replies, records and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Stale => "stale",
            Self::Semantic => "semantic",
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
