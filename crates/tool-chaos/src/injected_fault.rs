use std::fmt;

/// A fault that is injected into an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InjectedFault {
    /// The attempt is sent, and fails at once as unanswered. The tool does not run.
    Timeout,
    /// The attempt is sent and never answered, until its time limit ends it. The tool does not run.
    Hang,
    /// The network is unreachable, and nothing is sent.
    Network,
    /// The credentials are refused.
    Auth,
    /// The upstream limits the rate, with a retry hint of one second.
    RateLimit,
    /// The upstream reports an error of its own.
    ServerError,
    /// The tool runs, and its reply is lost.
    UnknownOutcome,
    /// The tool runs, and half of its reply is lost.
    Partial,
}

impl InjectedFault {
    /// All faults.
    pub const ALL: &'static [Self] = &[
        Self::Timeout,
        Self::Hang,
        Self::Network,
        Self::Auth,
        Self::RateLimit,
        Self::ServerError,
        Self::UnknownOutcome,
        Self::Partial,
    ];

    /// Faults of a rule that names none: the common ones, after which the outcome is known.
    pub const USUAL: &'static [Self] = &[
        Self::Timeout,
        Self::Network,
        Self::Auth,
        Self::RateLimit,
        Self::ServerError,
    ];

    /// Returns the name of the fault in plans and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Hang => "hang",
            Self::Network => "network",
            Self::Auth => "auth",
            Self::RateLimit => "rate_limit",
            Self::ServerError => "server_error",
            Self::UnknownOutcome => "unknown_outcome",
            Self::Partial => "partial",
        }
    }
}

impl fmt::Display for InjectedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
