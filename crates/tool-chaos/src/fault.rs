use std::fmt;

/// What may go wrong with an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InjectedFault {
    /// The attempt is sent, and that no answer came is known at once. The tool does not run.
    Timeout,
    /// The attempt is sent, and no answer ever comes: its own limit ends it. The tool does not run.
    Hang,
    /// Nobody can be reached, and nothing is sent.
    Network,
    /// The credentials are refused.
    Auth,
    /// The upstream asks to wait for a second.
    RateLimit,
    /// The upstream answers that it is at fault itself.
    ServerError,
    /// The tool runs, and its answer is lost.
    UnknownOutcome,
    /// The tool runs, and half of its answer is lost.
    Partial,
}

impl InjectedFault {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Timeout,
        Self::Hang,
        Self::Network,
        Self::Auth,
        Self::RateLimit,
        Self::ServerError,
        Self::UnknownOutcome,
        Self::Partial,
    ];

    /// Those that a rule without a choice of its own takes: the usual ones, which leave no doubt.
    pub const USUAL: [Self; 5] = [
        Self::Timeout,
        Self::Network,
        Self::Auth,
        Self::RateLimit,
        Self::ServerError,
    ];

    /// The word for it in plans and logs.
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
