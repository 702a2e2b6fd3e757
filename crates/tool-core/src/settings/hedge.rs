use std::time::Duration;

/// When a slow attempt gets company: a second attempt at the same call, whichever answers first.
///
/// Only tools are hedged that may run twice for one call, by their operator's word: see
/// [`CallContext::may_run_twice`](crate::CallContext::may_run_twice).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HedgeSettings {
    /// How long the first attempt is alone; so long after that comes the next, if there may be more.
    pub after: HedgeAfter,
    /// How many attempts may be made beside the first.
    pub max: u32,
}

/// How long an attempt is alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HedgeAfter {
    /// As long as this.
    Time(Duration),
    /// As long as this many percent of the tool's attempts took lately, and a tenth of it more.
    Percentile {
        /// Which share of them: 95 or 99.
        percent: HedgePercent,
        /// As long as this while too few attempts are known.
        at_first: Duration,
    },
}

/// The percentiles that [`HealthReport`](crate::HealthReport) has and that leave few attempts to be hedged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HedgePercent {
    /// One attempt of twenty takes longer.
    P95,
    /// One attempt of a hundred takes longer.
    P99,
}

impl HedgeSettings {
    /// How long an attempt is alone while nothing is known of the tool and nothing is said.
    pub const AT_FIRST: Duration = Duration::from_secs(1);
    /// How many attempts may be made beside the first at most: more of them are load and no help.
    pub const MOST: u32 = 3;
}
