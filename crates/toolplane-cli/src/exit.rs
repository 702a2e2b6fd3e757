use std::{fmt::Write, process::ExitCode};

use toolplane::core::ErrorKind;

/// Exit code of the process. The numbers are stable: scripts rely on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Exit {
    /// Success.
    Done = 0,
    /// The call or a check failed.
    Failed = 1,
    /// The command line, the arguments or the configuration are invalid.
    Usage = 2,
    /// No such tool or server.
    NotFound = 3,
    /// A policy refused the call, or the upstream refused the credentials.
    Denied = 4,
    /// The call is not finished: it waits for an approval or for input.
    Pending = 5,
    /// The upstream is unreachable, overloaded, or did not answer in time.
    Unavailable = 6,
    /// The definition of a tool has changed since it was approved.
    ToolChanged = 7,
    /// A bug of toolplane.
    Bug = 70,
    /// Interrupted by the user (SIGINT).
    Interrupted = 130,
    /// Terminated by another process (SIGTERM).
    Terminated = 143,
}

impl Exit {
    /// All exit codes, by number.
    pub const ALL: [Self; 11] = [
        Self::Done,
        Self::Failed,
        Self::Usage,
        Self::NotFound,
        Self::Denied,
        Self::Pending,
        Self::Unavailable,
        Self::ToolChanged,
        Self::Bug,
        Self::Interrupted,
        Self::Terminated,
    ];

    /// Returns the numeric code.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the description for help and reference.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "the call failed, or a check did",
            Self::Usage => "the command line, the arguments or the configuration cannot be used",
            Self::NotFound => "there is no such tool or server",
            Self::Denied => "denied by a policy, or by the upstream",
            Self::Pending => "not finished: the call waits for someone",
            Self::Unavailable => "the upstream is unavailable, or did not answer in time",
            Self::ToolChanged => "a tool is no longer what it was approved as",
            Self::Bug => "a bug of toolplane: please report it",
            Self::Interrupted => "interrupted (SIGINT)",
            Self::Terminated => "ended from outside (SIGTERM)",
        }
    }

    /// Returns the table of all codes for help.
    pub(crate) fn table() -> String {
        let mut table = "Exit codes:".to_owned();
        for exit in Self::ALL {
            let _ = write!(table, "\n  {:>3}  {}", exit.code(), exit.meaning());
        }
        table
    }
}

impl From<ErrorKind> for Exit {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::InvalidArguments => Self::Usage,
            ErrorKind::NotFound => Self::NotFound,
            ErrorKind::Denied | ErrorKind::Auth => Self::Denied,
            ErrorKind::RateLimited | ErrorKind::Overloaded | ErrorKind::Unavailable | ErrorKind::Timeout => {
                Self::Unavailable
            }
            ErrorKind::ToolChanged => Self::ToolChanged,
            ErrorKind::Internal => Self::Bug,
            _ => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}
