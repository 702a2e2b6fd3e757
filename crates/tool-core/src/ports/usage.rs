use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use crate::{BoxFuture, LatencyHistogram, UtcDay};

/// Key of figures of usage: the calls of one version of a tool by one principal on one day.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct UsageKey {
    /// Day on which the calls ended.
    pub day: UtcDay,
    /// Tenant of the principal.
    pub tenant: Arc<str>,
    /// Principal that called.
    pub principal: Arc<str>,
    /// Name of the tool.
    pub tool: Arc<str>,
    /// Version of the tool, if it has one.
    pub version: Option<Arc<str>>,
    /// Server or other upstream that runs the tool, such as the host of an HTTP API.
    pub server: Option<Arc<str>>,
}

impl UsageKey {
    /// Creates a key for a tool without a version that runs on no server.
    #[must_use]
    pub fn new(
        day: UtcDay,
        tenant: impl Into<Arc<str>>,
        principal: impl Into<Arc<str>>,
        tool: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            day,
            tenant: tenant.into(),
            principal: principal.into(),
            tool: tool.into(),
            version: None,
            server: None,
        }
    }

    /// Sets the version.
    #[must_use]
    pub fn with_version(mut self, version: Option<Arc<str>>) -> Self {
        self.version = version;
        self
    }

    /// Sets the server.
    #[must_use]
    pub fn with_server(mut self, server: Option<Arc<str>>) -> Self {
        self.server = server;
        self
    }
}

/// Figures of usage. Figures of several keys are [added](UsageFigures::add).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct UsageFigures {
    /// Number of calls that ended, cancelled ones included. A call that asks for input or approval has not ended.
    pub n_calls: u64,
    /// Number of those that failed: with an error, or with a result in which the tool reports one.
    pub n_errors: u64,
    /// Number of those that were answered with the result of another call, by a cache or an idempotency key.
    pub n_cached: u64,
    /// Number of attempts that were sent to the tool.
    pub n_attempts: u64,
    /// Size of the arguments, in bytes of JSON.
    pub argument_bytes: u64,
    /// Size of the results, in bytes of JSON.
    pub result_bytes: u64,
    /// Declared cost of the attempts that were sent, in billionths of a US dollar.
    pub cost: u64,
    /// Declared cost of the calls that were answered with the result of another one, in billionths of a US dollar.
    pub saved_cost: u64,
    /// Duration of all calls that made an attempt. A refused call makes none.
    pub time: Duration,
    /// Durations of the same calls.
    pub latencies: LatencyHistogram,
}

impl UsageFigures {
    /// Number of units of [`UsageFigures::cost`] in a US dollar.
    pub const COST_UNITS: f64 = 1e9;

    /// Adds other figures. A sum that is too large stays at the largest number.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.n_calls, other.n_calls),
            (&mut self.n_errors, other.n_errors),
            (&mut self.n_cached, other.n_cached),
            (&mut self.n_attempts, other.n_attempts),
            (&mut self.argument_bytes, other.argument_bytes),
            (&mut self.result_bytes, other.result_bytes),
            (&mut self.cost, other.cost),
            (&mut self.saved_cost, other.saved_cost),
        ] {
            *sum = sum.saturating_add(more);
        }
        self.time = self.time.saturating_add(other.time);
        self.latencies.merge(&other.latencies);
    }

    /// Returns the mean duration of the calls that made an attempt; zero if there was none.
    #[must_use]
    pub fn mean_time(&self) -> Duration {
        match self.latencies.count() {
            0 => Duration::ZERO,
            n_run => self.time.div_f64(n_run as f64),
        }
    }

    /// Estimates the time that the results of other calls saved: the mean duration for each.
    #[must_use]
    pub fn saved_time(&self) -> Duration {
        let seconds = self.mean_time().as_secs_f64() * self.n_cached as f64;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

/// Port to the storage of usage: figures of calls for each day, tool and principal.
pub trait DailyUsage: Send + Sync {
    /// Adds figures to those that are stored. Of several gateways that add to the same key, none loses anything.
    ///
    /// # Errors
    /// If the storage does not work. It then holds all of the figures or none.
    fn add<'a>(
        &'a self,
        figures: &'a [(UsageKey, UsageFigures)],
    ) -> BoxFuture<'a, Result<(), DailyUsageError>>;

    /// Returns the figures of these days, sorted by their keys.
    ///
    /// # Errors
    /// If the storage does not work.
    fn read(
        &self,
        days: RangeInclusive<UtcDay>,
    ) -> BoxFuture<'_, Result<Vec<(UsageKey, UsageFigures)>, DailyUsageError>>;

    /// Deletes the figures of all days before this one.
    ///
    /// # Errors
    /// If the storage does not work.
    fn forget(&self, before: UtcDay) -> BoxFuture<'_, Result<(), DailyUsageError>>;
}

/// Error of the storage of usage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store of usage does not work: {message}")]
pub struct DailyUsageError {
    message: String,
}

impl DailyUsageError {
    /// Creates the error of a storage that does not work.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}
