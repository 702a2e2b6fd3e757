use std::{fmt, time::Duration};

use crate::{LatencyClass, Metadata};

/// When answers of a tool are kept for later calls, and shared by identical calls at the same time.
///
/// Only a tool whose answer depends on nothing but its arguments and its caller, and which changes nothing, may have
/// these: see [`Descriptor::may_be_shared`](crate::Descriptor::may_be_shared).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheSettings {
    /// Whether there is no cache after all.
    pub disabled: bool,
    /// How long an answer is fresh; by what is known of the tool if absent, see [`CacheSettings::ttl_of`]. With zero,
    /// only calls at the same time share one.
    pub ttl: Option<Duration>,
    /// For how long after that it is still given, while a new one is fetched in the background.
    pub stale_while_revalidate: Duration,
    /// For how long after that it is given if no new one can be had.
    pub stale_if_error: Duration,
    /// What is larger is not kept, in bytes.
    pub max_bytes: usize,
    /// Who shares answers.
    pub scope: CacheScope,
}

/// Who shares answers of a tool. Tenants never do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum CacheScope {
    /// Calls of one principal.
    #[default]
    Principal,
    /// Calls of all principals of a tenant: only for tools whose answer does not depend on who asks.
    Shared,
}

/// Where the answer to a call of a tool with a cache came from.
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

/// What tools do that say something about the present moment.
const REALTIME: &str = "realtime-data";

impl CacheSettings {
    /// How long an answer is fresh: as long as is set, or 5 minutes if the tool is slow, 30 seconds if `realtime-data`
    /// is among its capabilities, and a minute otherwise.
    #[must_use]
    pub fn ttl_of(&self, metadata: &Metadata) -> Duration {
        let by_metadata = || {
            let seconds = if metadata.latency == Some(LatencyClass::Slow) {
                300
            } else if metadata
                .capabilities
                .iter()
                .any(|capability| capability == REALTIME)
            {
                30
            } else {
                60
            };
            Duration::from_secs(seconds)
        };
        self.ttl.unwrap_or_else(by_metadata)
    }
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self {
            disabled: false,
            ttl: None,
            stale_while_revalidate: Duration::ZERO,
            stale_if_error: Duration::ZERO,
            max_bytes: 1 << 20,
            scope: CacheScope::Principal,
        }
    }
}

impl CacheOutcome {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Hit, Self::Stale, Self::Miss, Self::Shared, Self::Bypassed];

    /// The word for it in replies, records and metrics.
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
