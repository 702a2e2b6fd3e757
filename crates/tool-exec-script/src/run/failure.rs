use std::borrow::Cow;

use raw_json::RawJson;
use serde_json::{Map, Value, json};
use tool_core::{ErrorKind, Secrets, ToolError, format_duration};
use tool_sandbox::{SandboxError, SandboxExit, SandboxLevel};

use crate::plan::Plan;

/// Maximum size of the end of standard error that an error shows, in bytes.
const MAX_SHOWN: usize = 2_000;
/// Maximum number of its lines.
const MAX_LINES: usize = 20;
/// Exit codes of failures that have a kind of their own (`sysexits.h`).
const USUAL_KINDS: [(i32, ErrorKind); 4] = [
    (64, ErrorKind::InvalidArguments),
    (65, ErrorKind::InvalidArguments),
    (69, ErrorKind::Unavailable),
    (75, ErrorKind::Unavailable),
];

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
                let known = self.plan.exit_codes.get(&code).copied();
                let usual = || USUAL_KINDS.into_iter().find(|(known, _)| *known == code);
                let kind = known.or_else(|| usual().map(|(_, kind)| kind));
                let kind = kind.unwrap_or(ErrorKind::UpstreamError);
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
            SandboxExit::OutputLimit => {
                let message = format!("{subject} wrote more than {} bytes", limits.output);
                self.error(ErrorKind::ResultTooLarge, message, [("limit", json!("output"))])
            }
            _ => self.error(
                ErrorKind::UpstreamError,
                format!("{subject} ended in an unknown way"),
                [],
            ),
        }
    }

    /// Returns the error of a run that needed more memory than it may use: the same call would need it again.
    pub(crate) fn out_of_memory(&self) -> ToolError {
        let mib = self.plan.limits.memory >> 20;
        let message = format!("the code needed more than the {mib} MiB of memory that it may use");
        self.error(ErrorKind::UpstreamError, message, [("limit", json!("memory"))])
            .with_no_retry()
    }

    /// Returns an error with these details. Secrets that the gateway knows are hidden.
    pub(crate) fn error<const N: usize>(
        &self,
        kind: ErrorKind,
        message: String,
        details: [(&str, Value); N],
    ) -> ToolError {
        let stderr = String::from_utf8_lossy(tail(self.stderr));
        let stderr = self.secrets.hide_in_text(stderr.trim_end()).into_owned();
        let hidden = match self.secrets.hide_in_text(&message) {
            Cow::Owned(hidden) => Some(hidden),
            Cow::Borrowed(_) => None,
        };
        let message = hidden.unwrap_or(message);
        let mut members = Map::new();
        members.insert("sandbox".to_owned(), self.level.as_str().into());
        for (key, value) in details {
            members.insert(key.to_owned(), value);
        }
        let shown = match stderr.is_empty() {
            true => message,
            false => {
                members.insert("stderr".to_owned(), stderr.as_str().into());
                format!("{message}; it wrote:\n{stderr}")
            }
        };
        ToolError::new(kind, shown).with_detail(RawJson::from(Value::Object(members)))
    }
}

/// Returns the last lines of a text.
fn tail(text: &[u8]) -> &[u8] {
    let text = &text[text.len().saturating_sub(MAX_SHOWN)..];
    let mut n_lines = 0;
    for (at, byte) in text.iter().enumerate().rev() {
        let is_last = at + 1 == text.len();
        if *byte == b'\n' && !is_last {
            n_lines += 1;
            if n_lines == MAX_LINES {
                return &text[at + 1..];
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::tail;

    #[test]
    fn the_end_of_a_text() {
        assert_eq!(tail(b""), b"");
        assert_eq!(tail(b"a\nb\n"), b"a\nb\n");
        let many: String = (0..100).map(|n| format!("{n}\n")).collect();
        assert!(tail(many.as_bytes()).starts_with(b"80\n"));
        assert_eq!(tail(&[b'x'; 9_000]).len(), 2_000);
    }
}
