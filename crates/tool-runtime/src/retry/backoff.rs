use std::time::Duration;

use crate::RetrySettings;
use tool_core::{Category, ErrorKind, Jitter, ToolError};

/// How pauses grow from one attempt to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backoff {
    /// There is no further attempt.
    Never,
    /// Any time up to a limit that doubles ("full jitter"): those who failed together come back spread out.
    Exponential,
    /// Each pause is longer than the one before by the same step.
    Linear,
}

/// What a rate limit that does not say how long it lasts is taken to last at least.
const RATE_LIMIT_STEP: Duration = Duration::from_secs(1);

impl Backoff {
    /// The table of what is tried again. A failure that may pass is waited out in an exponential way, a rate limit in a
    /// linear one; other credentials, other arguments or a person are needed for everything else.
    #[must_use]
    pub const fn of(kind: ErrorKind) -> Self {
        if !kind.is_retryable() {
            return Self::Never;
        }
        match kind.category() {
            Category::Transient => Self::Exponential,
            Category::RateLimit => Self::Linear,
            Category::Authentication | Category::Validation | Category::Unknown => Self::Never,
        }
    }

    /// The pause after this many attempts; nothing if there is no further one. Where the upstream said how long to
    /// wait, it is that, and at most a tenth more. One that need not be waited for has a pause all the same: those whom it
    /// told so together come back spread out.
    #[must_use]
    pub fn pause(
        self,
        n_attempts: u32,
        error: &ToolError,
        settings: &RetrySettings,
        jitter: &Jitter,
    ) -> Option<Duration> {
        let own = match self {
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
        Some(match error.retry_after().filter(|told| !told.is_zero()) {
            Some(told) => told.saturating_add(jitter.up_to(told / 10)).max(told),
            None => own,
        })
    }
}
