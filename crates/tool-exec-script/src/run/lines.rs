use std::sync::Arc;

use parking_lot::Mutex;
use raw_json::RawJson;
use tool_core::{CallContext, Progress, Secrets, hide_fields};
use tool_sandbox::OutputObserver;

use super::reply::MARK;
use crate::settings::ScriptStream;

/// Reports the lines that code writes to standard output, while it runs.
pub(crate) struct LineReporter {
    format: ScriptStream,
    progress: Arc<dyn Progress>,
    secrets: Arc<dyn Secrets>,
    /// Names of fields whose values are hidden in lines that are JSON.
    hidden: Vec<String>,
    lines: Mutex<Lines>,
}

/// Start of a line, as far as it was written.
#[derive(Default)]
struct Lines {
    buffer: Vec<u8>,
    /// `true` if the rest of the line is too long to be reported.
    is_cut: bool,
    n_reported: u64,
}

/// Maximum length of a line that is kept, in bytes. Secrets are searched for in all of it.
const MAX_LINE: usize = 64 << 10;
/// Maximum length of a reported line, in bytes.
const MAX_MESSAGE: usize = 4096;

impl LineReporter {
    /// Creates the reporter for a call, if somebody gets its reports.
    pub(crate) fn for_call(
        format: Option<ScriptStream>,
        cx: &CallContext,
        secrets: &Arc<dyn Secrets>,
    ) -> Option<Arc<Self>> {
        Some(Arc::new(Self {
            format: format?,
            progress: cx.origin.progress.clone()?,
            secrets: Arc::clone(secrets),
            hidden: cx.tool().settings().redacted_fields().to_vec(),
            lines: Mutex::default(),
        }))
    }

    /// Returns the observer for the sandbox.
    pub(crate) fn observer(self: &Arc<Self>) -> OutputObserver {
        let reporter = Arc::clone(self);
        Arc::new(move |chunk| reporter.push(chunk))
    }

    /// Takes a part of the output, and reports the lines that it ends.
    fn push(&self, chunk: &[u8]) {
        let mut lines = self.lines.lock();
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            let space = MAX_LINE.saturating_sub(lines.buffer.len());
            lines.is_cut |= part.len() > space;
            lines.buffer.extend_from_slice(&part[..part.len().min(space)]);
            if part.ends_with(b"\n") {
                self.report(&mut lines);
            }
        }
    }

    /// Reports a last line that no line break ends.
    pub(crate) fn end(&self) {
        self.report(&mut self.lines.lock());
    }

    fn report(&self, lines: &mut Lines) {
        let line = std::mem::take(&mut lines.buffer);
        let is_cut = std::mem::take(&mut lines.is_cut);
        // The outcome of a function is not a line that its code wrote.
        let end = line.iter().position(|byte| *byte == MARK).unwrap_or(line.len());
        let line = String::from_utf8_lossy(line[..end].trim_ascii_end());
        if line.is_empty() {
            return;
        }
        let value = (self.format == ScriptStream::Ndjson && !is_cut && !self.hidden.is_empty())
            .then(|| RawJson::parse(line.to_string()).ok())
            .flatten();
        let shown = value.map(|value| hide_fields(&value, &self.hidden).to_string());
        let shown = self
            .secrets
            .hide_in_text(shown.as_deref().unwrap_or(&line))
            .into_owned();
        let message = &shown[..shown.floor_char_boundary(MAX_MESSAGE)];
        lines.n_reported += 1;
        self.progress.report(RawJson::from_members(&[
            ("progress", RawJson::from(lines.n_reported)),
            ("message", RawJson::from(message)),
        ]));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use proptest::prelude::*;
    use raw_json::RawJson;
    use tool_core::{NoSecrets, Progress};

    use super::{LineReporter, Lines, MAX_LINE, MAX_MESSAGE};
    use crate::settings::ScriptStream;

    #[derive(Default)]
    struct Reports(Mutex<Vec<String>>);

    impl Progress for Reports {
        fn report(&self, report: RawJson) {
            let message = report.get("message").and_then(|message| message.string());
            self.0.lock().push(message.unwrap_or_default());
        }
    }

    fn reported(format: ScriptStream, hidden: &[&str], chunks: &[&[u8]]) -> Vec<String> {
        let reports = Arc::new(Reports::default());
        let reporter = LineReporter {
            format,
            progress: Arc::clone(&reports) as _,
            secrets: Arc::new(NoSecrets),
            hidden: hidden.iter().map(|name| (*name).to_owned()).collect(),
            lines: Mutex::new(Lines::default()),
        };
        for chunk in chunks {
            reporter.push(chunk);
        }
        reporter.end();
        reports.0.lock().clone()
    }

    #[test]
    fn lines_are_reported_without_what_is_no_line_of_the_code() {
        let text = reported(
            ScriptStream::Text,
            &[],
            &[b"one\r\n\n", b"tw", b"o\nthree\x1e{\"result\":1}\n"],
        );
        assert_eq!(text, ["one", "two", "three"]);
        let json = reported(
            ScriptStream::Ndjson,
            &["pin"],
            &[b"{\"pin\":1234,\"n\":1}\nno json\n\x1e{\"result\":1}\n"],
        );
        assert_eq!(json.len(), 2, "{json:?}");
        assert!(
            !json[0].contains("1234") && json[0].contains("\"n\":1"),
            "{json:?}"
        );
        assert_eq!(json[1], "no json");
    }

    #[test]
    fn a_long_line_is_cut_off() {
        let long = vec![b'a'; MAX_LINE + 10];
        let found = reported(ScriptStream::Text, &[], &[&long, &long, b"\nnext"]);
        let lengths: Vec<_> = found.iter().map(String::len).collect();
        assert_eq!(lengths, [MAX_MESSAGE, 4]);
    }

    proptest! {
        /// However output is cut into chunks, the lines are those of the whole text.
        #[test]
        fn chunks_do_not_matter(text in "[ab\n\r é]{0,40}", cuts in prop::collection::vec(0_usize..48, 0..6)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<_> = cuts.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect();
            let lines = text.split('\n').map(|line| line.trim_end_matches([' ', '\r']));
            let expected: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
            prop_assert_eq!(reported(ScriptStream::Text, &[], &chunks), expected);
        }
    }
}
