//! Errors of a sandbox.

use std::io;

use thiserror::Error;

use crate::SandboxLevel;

/// Error of a sandbox.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The level does not work on this machine.
    #[error("sandbox level `{level}` is unavailable: {reason}; {hint}")]
    #[non_exhaustive]
    Unavailable {
        /// Level that was tried.
        level: SandboxLevel,
        /// Description of the attempt and its failure.
        reason: String,
        /// Advice: packages to install, or settings to change.
        hint: String,
    },
    /// The process could not be started.
    #[error("failed to start the sandboxed process: {reason}")]
    #[non_exhaustive]
    Spawn {
        /// Step that failed.
        reason: String,
        /// Error of the system.
        #[source]
        source: Option<io::Error>,
    },
    /// The command is not one that the sandbox accepts.
    #[error("sandbox refuses {what}: {reason}")]
    #[non_exhaustive]
    Refused {
        /// Part of the command.
        what: String,
        /// Rule that it broke.
        reason: String,
    },
}

impl SandboxError {
    pub(crate) fn unavailable(
        level: SandboxLevel,
        reason: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::Unavailable {
            level,
            reason: reason.into(),
            hint: hint.into(),
        }
    }

    pub(crate) fn spawn(reason: impl Into<String>, source: impl Into<Option<io::Error>>) -> Self {
        Self::Spawn {
            reason: reason.into(),
            source: source.into(),
        }
    }

    pub(crate) fn refused(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Refused {
            what: what.into(),
            reason: reason.into(),
        }
    }
}
