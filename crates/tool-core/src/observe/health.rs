use std::time::Duration;

/// How well something is, by the attempts to call it in the last minutes and by what checks of it found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HealthStatus {
    /// Nothing is known of it.
    Unknown,
    /// More than 95 % of the attempts succeeded, and no check failed.
    Healthy,
    /// More than 80 % succeeded, or a check has failed lately.
    Degraded,
    /// Fewer succeeded, or checks fail again and again.
    Unhealthy,
}

impl HealthStatus {
    /// The status of something of whose attempts this share succeeded.
    ///
    /// ```
    /// use tool_core::HealthStatus;
    ///
    /// assert_eq!(HealthStatus::of_rate(0.96), HealthStatus::Healthy);
    /// assert_eq!(HealthStatus::of_rate(0.95), HealthStatus::Degraded);
    /// assert_eq!(HealthStatus::of_rate(0.80), HealthStatus::Unhealthy);
    /// ```
    #[must_use]
    pub fn of_rate(success_rate: f64) -> Self {
        if success_rate > 0.95 {
            Self::Healthy
        } else if success_rate > 0.80 {
            Self::Degraded
        } else {
            Self::Unhealthy
        }
    }

    /// The word for it in lists and over the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
            Self::Unhealthy => "unhealthy",
        }
    }
}

/// The figures behind a [`HealthStatus`].
///
/// An attempt counts as its [`HealthSignal`](crate::Sign) says. Percentiles are estimates: see whoever implements [`Health`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct HealthReport {
    /// What they amount to.
    pub status: HealthStatus,
    /// How many attempts count.
    pub n_calls: u64,
    /// How many of them failed.
    pub n_failures: u64,
    /// How many of the answers report a failure of the tool in its own words. They count as successes: the fault may be
    /// the arguments'.
    pub n_reported: u64,
    /// How long an attempt took on average.
    pub mean: Duration,
    /// How long the faster half took at most.
    pub p50: Duration,
    /// How long the fastest 95 % took at most.
    pub p95: Duration,
    /// How long the fastest 99 % took at most.
    pub p99: Duration,
    /// What checks found, if there were any.
    pub check: Option<CheckReport>,
}

/// What regular checks of something found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckReport {
    /// How many in a row have failed up to now; none if the last one succeeded.
    pub n_failures: u32,
    /// How long the last one took.
    pub took: Duration,
}

impl CheckReport {
    /// How many failures in a row make something unhealthy: one may be an accident.
    pub const UNHEALTHY: u32 = 3;

    /// The status by the checks alone.
    #[must_use]
    pub const fn status(&self) -> HealthStatus {
        match self.n_failures {
            0 => HealthStatus::Healthy,
            Self::UNHEALTHY.. => HealthStatus::Unhealthy,
            _ => HealthStatus::Degraded,
        }
    }
}

impl HealthReport {
    /// The report on something of which nothing is known.
    pub const UNKNOWN: Self = Self {
        status: HealthStatus::Unknown,
        n_calls: 0,
        n_failures: 0,
        n_reported: 0,
        mean: Duration::ZERO,
        p50: Duration::ZERO,
        p95: Duration::ZERO,
        p99: Duration::ZERO,
        check: None,
    };

    /// The share of attempts that succeeded, from 0 to 1; nothing if there were none.
    #[must_use]
    pub fn success_rate(&self) -> Option<f64> {
        let n_succeeded = self.n_calls.saturating_sub(self.n_failures);
        (self.n_calls > 0).then(|| n_succeeded as f64 / self.n_calls as f64)
    }

    /// The same report with the status that its figures amount to: the worse of what attempts and checks say.
    #[must_use]
    pub fn with_status(mut self) -> Self {
        let by_rate = self.success_rate().map(HealthStatus::from_rate);
        let by_check = self.check.as_ref().map(CheckReport::status);
        let badness = |status: &HealthStatus| *status as u8;
        let worst = by_rate.into_iter().chain(by_check).max_by_key(badness);
        self.status = worst.unwrap_or(HealthStatus::Unknown);
        self
    }
}

/// The port through which layers, routes and edges ask how well tools are, and what runs them: the order of fallbacks, hedges
/// and an operator's page go by the same figures. A breaker counts for itself, by the same [`HealthSignals`](crate::Signs).
pub trait Health: Send + Sync {
    /// How well the tool of this name is.
    fn tool(&self, name: &str) -> HealthReport;

    /// How well the server or host of this name is: see [`UpstreamState`](crate::Upstream).
    fn upstream(&self, name: &str) -> HealthReport;
}
