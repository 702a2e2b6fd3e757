use std::time::Duration;

/// Scope of a limit or a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Calling principal.
    Principal,
    /// Tool.
    Tool,
    /// Upstream, which may run other tools as well.
    Upstream,
    /// All calls.
    Total,
}

impl Scope {
    /// All scopes, narrowest first.
    pub const ALL: &'static [Self] = &[Self::Principal, Self::Tool, Self::Upstream, Self::Total];

    /// Returns the name in settings, logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Principal => "principal",
            Self::Tool => "tool",
            Self::Upstream => "upstream",
            Self::Total => "total",
        }
    }
}

/// State of a circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BreakerState {
    /// All attempts pass.
    Closed,
    /// One attempt passes as a probe.
    HalfOpen,
    /// No attempt passes.
    Open,
}

/// Change of state of a circuit breaker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerChange {
    /// State before the change.
    pub from: BreakerState,
    /// State after the change.
    pub to: BreakerState,
    /// Reason: a lower-case fragment.
    pub reason: String,
    /// Time for which no attempt passes, if the breaker opened.
    pub pause: Option<Duration>,
}

impl BreakerChange {
    /// Creates a change of state. `pause` is the time for which no attempt passes, if the breaker opened.
    #[must_use]
    pub fn new(
        from: BreakerState,
        to: BreakerState,
        reason: impl Into<String>,
        pause: Option<Duration>,
    ) -> Self {
        Self {
            from,
            to,
            reason: reason.into(),
            pause,
        }
    }
}

impl BreakerState {
    /// Returns the name in logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::HalfOpen => "half_open",
            Self::Open => "open",
        }
    }
}
