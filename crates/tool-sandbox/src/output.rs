//! Outcome of a sandboxed process.

use std::path::PathBuf;
use std::time::Duration;

use crate::SandboxLevel;

/// Way in which a sandboxed process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SandboxExit {
    /// Exit code. A code of 129 or more that names a signal is reported as [`Signal`](Self::Signal), as shells do.
    Code(i32),
    /// Signal that killed the process.
    Signal(i32),
    /// The limit of wall time or CPU time was reached.
    TimedOut,
    /// The limit of memory was reached.
    OutOfMemory,
    /// The limit of output was reached.
    OutputLimit,
}

impl SandboxExit {
    /// Returns `true` for exit code 0.
    #[must_use]
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

/// File that a run returned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollectedFile {
    /// Path relative to the work directory.
    pub path: PathBuf,
    /// Content.
    pub bytes: Vec<u8>,
}

/// File that a run did not return.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkippedFile {
    /// Path relative to the work directory.
    pub path: PathBuf,
    /// Rule that it broke.
    pub reason: String,
}

/// Outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxOutput {
    /// Way in which the process ended.
    pub exit: SandboxExit,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// `true` if the process wrote more standard output than the limit.
    pub stdout_truncated: bool,
    /// `true` if the process wrote more standard error than the limit.
    pub stderr_truncated: bool,
    /// Level that ran.
    pub level: SandboxLevel,
    /// Files that the command collects.
    pub files: Vec<CollectedFile>,
    /// Files that were not returned, and why.
    pub skipped_files: Vec<SkippedFile>,
    /// Time from the start of the process to the end of its tree.
    pub elapsed: Duration,
}
