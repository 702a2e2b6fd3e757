use bollard::errors::Error;
use tool_core::{ErrorKind, Secrets, ToolError};

/// Error of a container engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// No engine answers.
    #[error("no container engine can be reached: {reason}")]
    #[non_exhaustive]
    Unreachable {
        /// Socket and reason.
        reason: String,
    },
    /// The engine does not enforce limits of containers here.
    #[error("{engine} does not enforce the limit of {limits} here; {hint}")]
    #[non_exhaustive]
    Unlimited {
        /// Name of the engine.
        engine: String,
        /// Limits that do not hold.
        limits: String,
        /// Advice.
        hint: String,
    },
    /// The engine does not have the image.
    #[error("{engine} does not have the image `{image}`: {hint}")]
    #[non_exhaustive]
    NoImage {
        /// Name of the engine.
        engine: String,
        /// Reference of the image.
        image: String,
        /// Advice.
        hint: String,
    },
    /// The engine refused to do something.
    #[error("the container engine could not {action}: {message}")]
    #[non_exhaustive]
    Refused {
        /// Action that was refused.
        action: &'static str,
        /// Message of the engine.
        message: String,
    },
    /// The connection was lost, or the engine answered in an unknown form.
    #[error("the container engine could not {action}: {message}")]
    #[non_exhaustive]
    Lost {
        /// Action that has no answer.
        action: &'static str,
        /// Reason.
        message: String,
    },
}

impl EngineError {
    /// Creates the error of an action of the engine.
    pub(crate) fn of(action: &'static str, error: Error) -> Self {
        match error {
            Error::DockerResponseServerError { message, .. } => Self::Refused {
                action,
                message: first_line(&message),
            },
            Error::DockerStreamError { error } => Self::Refused {
                action,
                message: first_line(&error),
            },
            error => Self::Lost {
                action,
                message: chain(&error),
            },
        }
    }

    /// Returns the error of a call whose container did not run.
    pub(crate) fn into_tool_error(self, secrets: &dyn Secrets) -> ToolError {
        let is_lasting = !matches!(self, Self::Unreachable { .. } | Self::Lost { .. });
        let message = secrets.hide_in_text(&self.to_string()).into_owned();
        let error = ToolError::new(ErrorKind::Unavailable, message).with_source(self);
        match is_lasting {
            true => error.with_no_retry(),
            false => error,
        }
    }
}

/// Returns the first line of a message of an engine, within limits.
fn first_line(message: &str) -> String {
    const MAX: usize = 500;
    let line = message.trim().lines().next().unwrap_or_default();
    line.chars().take(MAX).collect()
}

/// Returns an error with its causes.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.ends_with(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}
