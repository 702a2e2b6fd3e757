use std::time::Duration;

/// Health status of a tool or an upstream, derived from recent attempts and from health checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HealthStatus {
    /// No attempts and no checks are known.
    Unknown,
    /// More than 95 % of the attempts succeeded, and no check failed.
    Healthy,
    /// More than 80 % of the attempts succeeded, or a check failed recently.
    Degraded,
    /// Fewer attempts succeeded, or checks fail repeatedly.
    Unhealthy,
}

impl HealthStatus {
    /// Returns the status for a success rate.
    ///
    /// # Examples
    /// ```
    /// use tool_core::HealthStatus;
    ///
    /// assert_eq!(HealthStatus::from_rate(0.96), HealthStatus::Healthy);
    /// assert_eq!(HealthStatus::from_rate(0.95), HealthStatus::Degraded);
    /// assert_eq!(HealthStatus::from_rate(0.80), HealthStatus::Unhealthy);
    /// ```
    #[must_use]
    pub fn from_rate(success_rate: f64) -> Self {
        if success_rate > 0.95 {
            Self::Healthy
        } else if success_rate > 0.80 {
            Self::Degraded
        } else {
            Self::Unhealthy
        }
    }

    /// Returns the status as a word for lists and for the wire.
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

/// Figures behind a [`HealthStatus`].
///
/// An attempt counts as its [`HealthSignal`](crate::HealthSignal) says. Percentiles are estimates: see the
/// implementation of [`Health`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct HealthReport {
    /// Status that follows from the figures.
    pub status: HealthStatus,
    /// Number of counted attempts.
    pub n_calls: u64,
    /// Number of failed attempts.
    pub n_failures: u64,
    /// Number of answers in which the tool itself reports a failure. They count as successes: the arguments may be at
    /// fault.
    pub n_reported: u64,
    /// Mean duration of an attempt.
    pub mean: Duration,
    /// 50th percentile of durations.
    pub p50: Duration,
    /// 95th percentile of durations.
    pub p95: Duration,
    /// 99th percentile of durations.
    pub p99: Duration,
    /// Result of health checks, if there are any.
    pub check: Option<CheckReport>,
}

/// Result of the health checks of a tool or an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// Number of consecutive failures; 0 if the last check succeeded.
    pub n_failures: u32,
    /// Duration of the last check.
    pub took: Duration,
}

impl CheckReport {
    /// Creates a report of the last health checks.
    #[must_use]
    pub const fn new(n_failures: u32, took: Duration) -> Self {
        Self { n_failures, took }
    }
}

impl CheckReport {
    /// Number of consecutive failures that make the status unhealthy. A single one may be an accident.
    pub const UNHEALTHY: u32 = 3;

    /// Returns the status derived from the checks alone.
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
    /// Report without any figures.
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

    /// Returns the share of successful attempts, from 0 to 1; `None` if there were no attempts.
    #[must_use]
    pub fn success_rate(&self) -> Option<f64> {
        let n_succeeded = self.n_calls.saturating_sub(self.n_failures);
        (self.n_calls > 0).then(|| n_succeeded as f64 / self.n_calls as f64)
    }

    /// Sets the status that follows from the figures: the worse of the statuses of attempts and checks.
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

/// Port that layers, routes and edges ask for the health of tools and upstreams. The order of fallbacks, hedges and
/// an operator's page use the same figures. A breaker counts for itself, with the same
/// [`HealthSignals`](crate::HealthSignals).
pub trait Health: Send + Sync {
    /// Returns the health of the tool with this name.
    fn tool(&self, name: &str) -> HealthReport;

    /// Returns the health of the server or host with this name: see [`UpstreamState`](crate::UpstreamState).
    fn upstream(&self, name: &str) -> HealthReport;
}
