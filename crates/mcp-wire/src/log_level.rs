use std::{fmt, str::FromStr};

/// How severe a log message is, in the order of RFC 5424: the lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// Details for those who debug.
    Debug,
    /// What happens in the normal course.
    Info,
    /// Normal, but worth noticing.
    Notice,
    /// Something may go wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A part does not work.
    Critical,
    /// Somebody must act at once.
    Alert,
    /// Nothing works.
    Emergency,
}

/// A text that names no [`LogLevel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown log level")]
pub struct UnknownLogLevel;

impl LogLevel {
    /// Every level, the lowest first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The level as messages spell it.
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
            .into_iter()
            .find(|level| level.as_str() == text)
            .ok_or(UnknownLogLevel)
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
