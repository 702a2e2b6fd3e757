use std::{fmt::Write, process::ExitCode};

use toolplane::core::ErrorKind;

/// How the process ends. Scripts rely on these numbers: they do not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Exit {
    /// What was asked for is done.
    Done = 0,
    /// The call failed, or a check did.
    Failed = 1,
    /// The command line, the arguments or the configuration cannot be used.
    Usage = 2,
    /// There is no such tool or server.
    NotFound = 3,
    /// A policy refuses the call, or the upstream does not accept the credentials.
    Denied = 4,
    /// The call is not finished: it waits for someone.
    Pending = 5,
    /// The upstream cannot be reached, is overloaded, or did not answer in time.
    Unavailable = 6,
    /// A tool is no longer what it was approved as.
    ToolChanged = 7,
    /// A fault of toolplane itself.
    Bug = 70,
    /// Interrupted by the user (SIGINT).
    Interrupted = 130,
    /// Ended from outside (SIGTERM).
    Terminated = 143,
}

impl Exit {
    /// Every way to end, by number.
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

    /// The number that the process ends with.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// What the number means, for help and reference.
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
            Self::Bug => "a fault of toolplane: please report it",
            Self::Interrupted => "interrupted (SIGINT)",
            Self::Terminated => "ended from outside (SIGTERM)",
        }
    }

    /// The table of all codes as help shows it.
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
