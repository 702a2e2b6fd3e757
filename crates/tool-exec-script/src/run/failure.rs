use serde_json::{Value, json};
use tool_core::{ErrorKind, Secrets, ToolError, format_duration};
use tool_sandbox::{SandboxError, SandboxExit, SandboxLevel};
use tool_settings::program::ProgramFailure;

use crate::plan::Plan;

/// A run that failed.
pub(crate) struct Failed<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) secrets: &'a dyn Secrets,
    pub(crate) level: SandboxLevel,
    pub(crate) stderr: &'a [u8],
}

/// Returns the error of a run that did not start.
pub(crate) fn refused(error: SandboxError) -> ToolError {
    let (kind, message) = match &error {
        SandboxError::Unavailable { .. } => (
            ErrorKind::Unavailable,
            format!("the code does not run without a sandbox: {error}"),
        ),
        SandboxError::Refused { .. } => (
            ErrorKind::Internal,
            format!("the settings of the tool are not usable: {error}"),
        ),
        _ => (ErrorKind::Internal, "the code could not be started".to_owned()),
    };
    ToolError::new(kind, message).with_no_retry().with_source(error)
}

impl Failed<'_> {
    /// Returns the error of a run that ended in this way, with the end of what it wrote to standard error.
    pub(crate) fn ended(&self, exit: SandboxExit) -> ToolError {
        let limits = &self.plan.limits;
        let subject = match self.plan.language {
            crate::ScriptLanguage::Bash => "the script",
            crate::ScriptLanguage::Python => "the code",
        };
        match exit {
            SandboxExit::Code(code) => {
                let kind = self.plan.exit_codes.kind(code);
                let message = format!("{subject} ended with exit code {code}");
                self.error(kind, message, [("exit_code", json!(code))])
            }
            SandboxExit::Signal(signal) => {
                let message = format!("{subject} was ended by signal {signal}");
                self.error(ErrorKind::UpstreamError, message, [("signal", json!(signal))])
            }
            SandboxExit::TimedOut => {
                let limit = format_duration(limits.wall_time.min(limits.cpu_time));
                let message = format!("{subject} was stopped at its time limit ({limit} or less)");
                self.error(ErrorKind::Timeout, message, [("limit", json!("time"))])
            }
            SandboxExit::OutOfMemory => self.out_of_memory(),
            SandboxExit::OutputLimit => self.failure().too_much_output(subject, limits.output),
            _ => self.error(
                ErrorKind::UpstreamError,
                format!("{subject} ended in an unknown way"),
                [],
            ),
        }
    }

    /// Returns the error of a run that needed more memory than it may use: the same call would need it again.
    pub(crate) fn out_of_memory(&self) -> ToolError {
        self.failure().out_of_memory("the code", self.plan.limits.memory)
    }

    /// Returns an error with these details. Secrets that the gateway knows are hidden.
    pub(crate) fn error<const N: usize>(
        &self,
        kind: ErrorKind,
        message: String,
        details: [(&str, Value); N],
    ) -> ToolError {
        self.failure().error(kind, message, details)
    }

    fn failure(&self) -> ProgramFailure<'_> {
        ProgramFailure::new(self.level.as_str(), self.stderr, self.secrets)
    }
}
