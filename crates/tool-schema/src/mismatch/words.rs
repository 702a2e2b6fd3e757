//! Formatting of values and names in messages, cut to a readable length.

use std::io;

use serde_json::Value;

/// Maximum length of a value, in characters.
const MAX_FOUND: usize = 80;
/// Maximum length of one of several values, in characters.
const MAX_OPTION: usize = 60;
/// Maximum number of names or values in a list.
const MAX_LISTED: usize = 10;

/// Formats the subject of a rule: a JSON Pointer, or the whole value.
pub(crate) fn place(path: &str) -> String {
    if path.is_empty() {
        "the value".to_owned()
    } else {
        format!("`{}`", cut(path, 200))
    }
}

/// Formats the allowed values, such as `` one of `cat`, `dog` ``.
pub(crate) fn literals(values: Vec<&Value>) -> String {
    let one_of = if values.len() > 1 { "one of " } else { "" };
    format!("{one_of}{}", list(values.into_iter().map(literal)))
}

/// Formats an allowed value: a plain string without quotes, any other value as JSON.
fn literal(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => format!("`{}`", cut(text, MAX_OPTION)),
        other => format!("`{}`", cut(&found(other), MAX_OPTION)),
    }
}

/// Returns `true` if a string is unambiguous without quotes. `1` and `null` would look like other values.
fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && !text.contains(['`', '"', '\\'])
        && !text.chars().any(char::is_control)
        && text.trim() == text
        && serde_json::from_str::<Value>(text).is_err()
}

pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

pub(crate) fn properties(n: u64) -> String {
    format!("{n} {}", if n == 1 { "property" } else { "properties" })
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| found(value), ToOwned::to_owned)
}

pub(crate) fn or(names: &[String]) -> String {
    match names {
        [] => "another value".to_owned(),
        [name] => name.clone(),
        [names @ .., last] => format!("{} or {last}", names.join(", ")),
    }
}

/// Formats the first names of a list, and the number of further ones.
pub(crate) fn list(mut names: impl Iterator<Item = String>) -> String {
    let mut out = names.by_ref().take(MAX_LISTED).collect::<Vec<_>>().join(", ");
    let more = names.count();
    if more > 0 {
        out.push_str(&format!(" and {more} more"));
    }
    out
}

/// Formats a value as JSON, cut to a readable length.
pub(crate) fn found(value: &Value) -> String {
    let mut sink = Sink(Vec::new());
    // The only possible error is that of a full sink, which is expected.
    let complete = serde_json::to_writer(&mut sink, value).is_ok();
    let text = String::from_utf8_lossy(&sink.0);
    if complete {
        cut(&text, MAX_FOUND)
    } else {
        cut(&format!("{text}…"), MAX_FOUND)
    }
}

pub(crate) fn cut(text: &str, most: usize) -> String {
    let text = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(most - 1).collect();
    out.push('…');
    out
}

/// Writer that keeps only the beginning, so that a large value is not serialized as a whole.
struct Sink(Vec<u8>);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = (MAX_FOUND * 4).saturating_sub(self.0.len());
        if room == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let taken = bytes.len().min(room);
        self.0.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
