use std::time::Duration;

use crate::RetrySettings;
use tool_core::{Category, ErrorKind, Jitter, ToolError};

/// Growth of the pauses between attempts (backoff).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backoff {
    /// No further attempt.
    Never,
    /// A random time up to a limit that doubles (AWS, "Exponential Backoff and Jitter", full jitter). Calls that failed at the
    /// same time retry at different times.
    Exponential,
    /// Pauses that grow by the same step, with jitter in their second half.
    Linear,
}

/// Minimum step after a rate limit without a retry hint.
const RATE_LIMIT_STEP: Duration = Duration::from_secs(1);

impl Backoff {
    /// Returns the backoff for a kind of error: exponential for transient failures, linear for rate limits. All other kinds need
    /// other credentials, other arguments or a person, so they are never retried.
    ///
    /// # Examples
    /// ```
    /// use tool_core::ErrorKind;
    /// use tool_runtime::Backoff;
    ///
    /// assert_eq!(Backoff::for_kind(ErrorKind::Unavailable), Backoff::Exponential);
    /// assert_eq!(Backoff::for_kind(ErrorKind::Denied), Backoff::Never);
    /// ```
    #[must_use]
    pub const fn for_kind(kind: ErrorKind) -> Self {
        if !kind.is_retryable() {
            return Self::Never;
        }
        match kind.category() {
            Category::Transient => Self::Exponential,
            Category::RateLimit => Self::Linear,
            _ => Self::Never,
        }
    }

    /// Returns the pause after this many attempts, or `None` if there is no further attempt. A retry hint of the upstream
    /// replaces the computed pause, with up to a tenth more as jitter. A hint of zero is ignored, so that calls which failed at
    /// the same time retry at different times.
    #[must_use]
    pub fn pause(
        self,
        n_attempts: u32,
        error: &ToolError,
        settings: &RetrySettings,
        jitter: &Jitter,
    ) -> Option<Duration> {
        let computed = match self {
            Self::Never => return None,
            Self::Exponential => {
                let doublings = n_attempts.saturating_sub(1).min(31);
                let limit = settings.initial_delay.saturating_mul(1 << doublings);
                jitter.up_to(limit.min(settings.max_delay))
            }
            Self::Linear => {
                let step = settings.initial_delay.max(RATE_LIMIT_STEP);
                let half = step.saturating_mul(n_attempts).min(settings.max_delay) / 2;
                half + jitter.up_to(half)
            }
        };
        Some(match error.retry_after().filter(|hint| !hint.is_zero()) {
            Some(hint) => hint.saturating_add(jitter.up_to(hint / 10)).max(hint),
            None => computed,
        })
    }
}
