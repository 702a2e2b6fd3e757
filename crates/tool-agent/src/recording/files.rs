//! Files of a recording: `tools/NAME.json` with the definitions, and `calls/000001-NAME.json` with the calls.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use raw_json::RawJson;
use tool_core::{Body, CallContext, ErrorKind, Reply, ToolError, hide_fields, hide_secrets};

/// Error of a recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}`: {problem}", path.display())]
#[non_exhaustive]
pub struct RecordingError {
    /// Directory or file.
    pub path: PathBuf,
    /// Problem: a fragment.
    pub problem: String,
}

impl RecordingError {
    pub(super) fn new(path: &Path, problem: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            problem: problem.into(),
        }
    }

    pub(super) fn io(path: &Path, error: &io::Error) -> Self {
        Self::new(path, error.to_string())
    }
}

/// Directory of the definitions.
pub(super) const TOOLS: &str = "tools";
/// Directory of the calls.
pub(super) const CALLS: &str = "calls";

/// Writes a file, whole or not at all.
pub(super) fn write(path: &Path, content: &str) -> Result<(), RecordingError> {
    let beside = path.with_extension("new");
    fs::write(&beside, content).map_err(|error| RecordingError::io(&beside, &error))?;
    fs::rename(&beside, path).map_err(|error| RecordingError::io(path, &error))
}

/// Returns a member's value as it is written: in lines, unless it has spaces of its own.
fn to_lines(value: &RawJson) -> String {
    match value.compact() == *value {
        // A text within JSON has no line breaks.
        true => value.indented().replace('\n', "\n  "),
        false => value.as_str().to_owned(),
    }
}

/// Returns a member's value as it was before it was written.
fn from_lines(value: &RawJson) -> RawJson {
    let compact = value.compact();
    match to_lines(&compact) == value.as_str() {
        true => compact,
        false => value.clone(),
    }
}

/// Reads all JSON files of a directory, in the order of their names.
pub(super) fn read_all(folder: &Path) -> Result<Vec<(PathBuf, RawJson)>, RecordingError> {
    let entries = fs::read_dir(folder).map_err(|error| RecordingError::io(folder, &error))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| RecordingError::io(folder, &error))?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    let read = paths.into_iter().map(|path| {
        let text = fs::read_to_string(&path).map_err(|error| RecordingError::io(&path, &error))?;
        let content = RawJson::parse(text).map_err(|error| RecordingError::new(&path, error.to_string()))?;
        Ok((path, content))
    });
    read.collect()
}

/// A recorded call.
#[derive(Debug, Clone)]
pub(super) struct RecordedCall {
    pub(super) tool: String,
    /// SHA-256 of the tool's definition, in hexadecimal digits.
    pub(super) definition: String,
    /// Arguments, without secrets and the hidden fields.
    pub(super) arguments: RawJson,
    /// Fields of the arguments that are hidden, by the tool's setting `redact`.
    pub(super) hidden: Vec<String>,
    pub(super) result: Result<Reply, ToolError>,
}

/// Returns the arguments of a call as a recording has them.
pub(super) fn without_secrets(cx: &CallContext, hidden: &[String]) -> RawJson {
    hide_secrets(&hide_fields(cx.arguments.raw(), hidden))
}

impl RecordedCall {
    /// Returns the content of the call's file. `at` is the time of its start, in RFC 3339.
    pub(super) fn to_text(&self, principal: &str, at: &str, took: Duration) -> String {
        let text = |text: &str| RawJson::from(text);
        let milliseconds = (took.as_secs_f64() * 1e6).round() / 1e3;
        let mut members = vec![
            ("tool", text(&self.tool)),
            ("definition", text(&self.definition)),
            ("principal", text(principal)),
            ("at", text(at)),
            ("duration_ms", RawJson::from(serde_json::json!(milliseconds))),
            ("arguments", self.arguments.clone()),
        ];
        if !self.hidden.is_empty() {
            members.push(("redact", RawJson::from(serde_json::json!(self.hidden))));
        }
        match &self.result {
            Ok(reply) => {
                let (key, body) = match &reply.body {
                    Body::Value(value) => ("value", value),
                    Body::Result(result) => ("result", result),
                };
                members.push((key, hide_secrets(body)));
                if reply.is_error {
                    members.push(("is_error", RawJson::from(true)));
                }
            }
            Err(error) => {
                let mut told = vec![
                    ("kind", text(error.kind().as_str())),
                    ("message", hide_secrets(&text(error.message()))),
                ];
                if error.may_have_run() {
                    told.push(("may_have_run", RawJson::from(true)));
                }
                if let Some(pause) = error.retry_after() {
                    let pause = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
                    told.push(("retry_after_ms", RawJson::from(pause)));
                }
                members.push(("error", RawJson::from_members(&told)));
            }
        }
        let lines: Vec<_> = members
            .iter()
            .map(|(key, value)| format!("  \"{key}\": {}", to_lines(value)))
            .collect();
        format!("{{\n{}\n}}\n", lines.join(",\n"))
    }

    /// Reads a call. The error is a fragment.
    pub(super) fn from_json(stored: &RawJson) -> Result<Self, String> {
        let text = |key: &str| {
            let text = stored.get(key).and_then(|text| text.string());
            text.ok_or_else(|| format!("`{key}` is missing"))
        };
        let is = |value: &RawJson, key: &str| value.get(key).is_some_and(|is| is.as_str() == "true");
        let result = if let Some(error) = stored.get("error") {
            let kind = error.get("kind").and_then(|kind| kind.string());
            let kind = kind
                .and_then(|kind| ErrorKind::named(&kind))
                .ok_or("the kind of its error is unknown")?;
            let message = error.get("message").and_then(|message| message.string());
            let mut made = ToolError::new(kind, message.unwrap_or_default());
            if is(&error, "may_have_run") {
                made = made.with_may_have_run();
            }
            if let Some(pause) = error.get("retry_after_ms").and_then(|pause| pause.to().ok()) {
                made = made.with_retry_after(Duration::from_millis(pause));
            }
            Err(made)
        } else if let Some(result) = stored.get("result") {
            Ok(Reply::result(from_lines(&result), is(stored, "is_error")))
        } else {
            let value = stored
                .get("value")
                .ok_or("it has no `value`, `result` or `error`")?;
            let mut reply = Reply::value(from_lines(&value));
            reply.is_error = is(stored, "is_error");
            Ok(reply)
        };
        let hidden = stored.get("redact");
        let hidden = hidden
            .iter()
            .flat_map(RawJson::items)
            .filter_map(|field| field.string());
        Ok(Self {
            hidden: hidden.collect(),
            tool: text("tool")?,
            definition: text("definition")?,
            arguments: from_lines(&stored.get("arguments").ok_or("`arguments` is missing")?),
            result,
        })
    }
}
