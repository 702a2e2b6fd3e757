//! TOML. The entry is a table of its own at the end of the file.

use serde_json::Value;
use toml_edit::{Array, Document, Item};

use super::{EditError, Slot, line_break};

pub(super) fn insert(text: &str, slot: Slot<'_>, entry: &Value) -> String {
    let break_ = line_break(text);
    let mut written = text.to_owned();
    if !text.is_empty() {
        if !text.ends_with('\n') {
            written.push_str(break_);
        }
        written.push_str(break_);
    }
    written.push_str(&format!("[{}.{}]{break_}", slot.section.join("."), slot.name));
    for (key, value) in entry.as_object().into_iter().flatten() {
        written.push_str(&format!("{key} = {}{break_}", value_text(value)));
    }
    if !text.is_empty() && !text.ends_with('\n') {
        written.truncate(written.len() - break_.len());
    }
    written
}

/// Formats a value of an entry: a text, a list of texts, a number or a truth value.
fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => toml_edit::Value::from(text.as_str()).to_string(),
        Value::Array(values) => {
            let texts = values.iter().filter_map(Value::as_str);
            Array::from_iter(texts).to_string()
        }
        other => other.to_string(),
    }
}

/// Removes the table of the entry with the tables in it, from its header to its last value, and the empty line before it.
pub(super) fn remove(text: &str, slot: Slot<'_>) -> Result<String, EditError> {
    let missing = || EditError::new(format!("it has no table `{}`", slot.name));
    let document = Document::parse(text).map_err(|error| EditError::new(error.message()))?;
    let mut item = document.as_item();
    for key in slot.section.iter().chain([&slot.name]) {
        item = item.get(key).ok_or_else(missing)?;
    }
    let mut start = None;
    let mut end = 0;
    extent(item, &mut start, &mut end);
    let start = start.ok_or_else(missing)?;
    // The line of the last value ends with its comment.
    let end = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
    let before = &text[..start];
    let from = match end == text.len() && !text.ends_with('\n') {
        // The file had no line break at its end before the table.
        true => before.trim_end_matches(['\r', '\n']).len(),
        false => {
            let line = before.strip_suffix("\r\n").or_else(|| before.strip_suffix('\n'));
            let empty = line.filter(|line| line.is_empty() || line.ends_with('\n'));
            empty.map_or(start, str::len)
        }
    };
    Ok(format!("{}{}", &text[..from], &text[end..]))
}

/// Extends a range by the headers and values of a table and the tables in it.
fn extent(item: &Item, start: &mut Option<usize>, end: &mut usize) {
    if let Some(span) = item.span() {
        *start = Some(start.map_or(span.start, |known| known.min(span.start)));
        *end = (*end).max(span.end);
    }
    if let Item::Table(table) = item {
        for (_, inner) in table {
            extent(inner, start, end);
        }
    }
}
