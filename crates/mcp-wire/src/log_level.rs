use std::{fmt, str::FromStr};

/// Severity of a log message (RFC 5424), the lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// Details for debugging.
    Debug,
    /// Normal operation.
    Info,
    /// Normal but significant condition.
    Notice,
    /// Condition that may lead to an error.
    Warning,
    /// Error condition.
    Error,
    /// Failure of a component.
    Critical,
    /// Condition that requires immediate action.
    Alert,
    /// System is unusable.
    Emergency,
}

/// Error of a text that is not a [`LogLevel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown log level")]
pub struct UnknownLogLevel;

impl LogLevel {
    /// All levels, the lowest first.
    pub const ALL: &'static [Self] = &[
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// Returns the level as it is written in messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl FromStr for LogLevel {
    type Err = UnknownLogLevel;

    fn from_str(text: &str) -> Result<Self, UnknownLogLevel> {
        Self::ALL
            .iter()
            .copied()
            .find(|level| level.as_str() == text)
            .ok_or(UnknownLogLevel)
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
