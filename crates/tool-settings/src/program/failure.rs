use std::{borrow::Cow, fmt};

use raw_json::RawJson;
use serde_json::{Map, Value, json};
use tool_core::{ErrorKind, Secrets, ToolError};

/// Maximum size of the end of standard error that an error shows, in bytes.
const MAX_SHOWN: usize = 2_000;
/// Maximum number of its lines.
const MAX_LINES: usize = 20;

/// A run of a program that failed: what its errors show, and what they hide.
#[derive(Clone, Copy)]
pub struct ProgramFailure<'a> {
    /// Level of isolation that the program ran in, such as `bwrap`.
    level: &'a str,
    stderr: &'a [u8],
    secrets: &'a dyn Secrets,
}

impl fmt::Debug for ProgramFailure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramFailure")
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}

impl<'a> ProgramFailure<'a> {
    /// Creates a failure from the level of isolation of the run and what it wrote to standard error. Secrets that the gateway
    /// knows are hidden in its errors.
    #[must_use]
    pub fn new(level: &'a str, stderr: &'a [u8], secrets: &'a dyn Secrets) -> Self {
        Self {
            level,
            stderr,
            secrets,
        }
    }

    /// Returns a text without the secrets that the gateway knows.
    #[must_use]
    pub fn hidden(&self, text: &str) -> String {
        self.secrets.hide_in_text(text).into_owned()
    }

    /// Returns an error with these details and the last lines of standard error.
    #[must_use]
    pub fn error<const N: usize>(
        &self,
        kind: ErrorKind,
        message: String,
        details: [(&str, Value); N],
    ) -> ToolError {
        let stderr = String::from_utf8_lossy(last_lines(self.stderr));
        let stderr = self.hidden(stderr.trim_end());
        let hidden = match self.secrets.hide_in_text(&message) {
            Cow::Owned(hidden) => Some(hidden),
            Cow::Borrowed(_) => None,
        };
        let message = hidden.unwrap_or(message);
        let mut members = Map::new();
        members.insert("sandbox".to_owned(), self.level.into());
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

    /// Returns the error of a run that needed more memory than this many bytes: the same call would need it again.
    #[must_use]
    pub fn out_of_memory(&self, subject: &str, memory: u64) -> ToolError {
        let mib = memory >> 20;
        let message = format!("{subject} needed more than the {mib} MiB of memory that it may use");
        self.error(ErrorKind::UpstreamError, message, [("limit", json!("memory"))])
            .with_no_retry()
    }

    /// Returns the error of a run that wrote more than this many bytes.
    #[must_use]
    pub fn too_much_output(&self, subject: &str, output: u64) -> ToolError {
        let message = format!("{subject} wrote more than {output} bytes");
        self.error(ErrorKind::ResultTooLarge, message, [("limit", json!("output"))])
    }
}

/// Returns the last lines of a text: those that an error shows.
#[must_use]
pub fn last_lines(text: &[u8]) -> &[u8] {
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
    use super::last_lines;

    #[test]
    fn the_end_of_a_text() {
        assert_eq!(last_lines(b""), b"");
        assert_eq!(last_lines(b"a\nb\n"), b"a\nb\n");
        let many: String = (0..100).map(|n| format!("{n}\n")).collect();
        assert!(last_lines(many.as_bytes()).starts_with(b"80\n"));
        assert_eq!(last_lines(&[b'x'; 9_000]).len(), 2_000);
    }
}
