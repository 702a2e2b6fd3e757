//! TOML. A new entry is a table of its own at the end of the file. A known one is edited in the form that it has.

use std::ops::Range;

use serde_json::Value;
use toml_edit::{Document, Item, Key, TableLike};

use super::{Change, EditError, Slot, line_break, value::to_toml};

/// Hint for forms of a table that are not edited.
const BY_HAND: &str = "edit the entry by hand";

pub(super) fn insert(text: &str, slot: Slot<'_>, entry: &Value) -> Result<String, EditError> {
    let document = parse(text)?;
    let mut item = Some(document.as_item());
    for (depth, key) in slot.section.iter().enumerate() {
        item = item.and_then(|item| item.get(key));
        if item.is_some_and(Item::is_inline_table) {
            let section = slot.section[..=depth].join(".");
            return Err(EditError::with_hint(
                format!("`{section}` is written inline, to which no table can be added"),
                format!("write its entries as `[{section}.NAME]` tables, or add the entry by hand"),
            ));
        }
    }
    let break_ = line_break(text);
    let mut written = text.to_owned();
    if !text.is_empty() {
        if !text.ends_with('\n') {
            written.push_str(break_);
        }
        written.push_str(break_);
    }
    let path = slot.section.iter().chain([&slot.name]).map(|key| key_text(key));
    written.push_str(&format!("[{}]{break_}", path.collect::<Vec<_>>().join(".")));
    for (key, value) in entry.as_object().into_iter().flatten() {
        written.push_str(&format!("{} = {}{break_}", key_text(key), value_text(value)?));
    }
    if !text.is_empty() && !text.ends_with('\n') {
        written.truncate(written.len() - break_.len());
    }
    Ok(written)
}

pub(super) fn replace(text: &str, slot: Slot<'_>, changes: &[Change<'_>]) -> Result<String, EditError> {
    let path = path(slot);
    let mut edited = text.to_owned();
    for change in changes {
        edited = match *change {
            Change::Set(key, value) => set(&edited, &path, key, value)?,
            Change::Remove(key) => remove_item(&edited, &[&path[..], &[key]].concat())?,
        };
    }
    Ok(edited)
}

/// Removes the entry. A table goes with the tables in it, from its header to its last value, and the empty line before it.
pub(super) fn remove(text: &str, slot: Slot<'_>) -> Result<String, EditError> {
    remove_item(text, &path(slot))
}

fn path<'a>(slot: Slot<'a>) -> Vec<&'a str> {
    slot.section.iter().copied().chain([slot.name]).collect()
}

/// Parses a text that the reader has accepted, or one after a change of it.
fn parse(text: &str) -> Result<Document<&str>, EditError> {
    Document::parse(text)
        .map_err(|_| EditError::with_hint("its tables are written in a form that is not edited", BY_HAND))
}

fn at<'a>(document: &'a Document<&str>, path: &[&str]) -> Option<&'a Item> {
    path.iter()
        .try_fold(document.as_item(), |item, key| item.get(key))
}

fn missing(path: &[&str]) -> EditError {
    EditError::with_hint(
        format!("it has no `{}` that can be edited", path.join(".")),
        BY_HAND,
    )
}

fn key_text(key: &str) -> String {
    Key::new(key).to_string()
}

fn value_text(value: &Value) -> Result<String, EditError> {
    let value = to_toml(value).ok_or_else(|| EditError::new("TOML has no null"))?;
    Ok(value.to_string())
}

/// Returns `true` for a table that is only a part of the keys in it, such as `a` of `a.b = 1`.
fn is_dotted(item: &Item) -> bool {
    match item {
        Item::Table(table) => table.is_dotted(),
        Item::Value(toml_edit::Value::InlineTable(table)) => table.is_dotted(),
        _ => false,
    }
}

/// Gives a key of a table this value.
fn set(text: &str, path: &[&str], key: &str, value: &Value) -> Result<String, EditError> {
    let document = parse(text)?;
    let table = at(&document, path).ok_or_else(|| missing(path))?;
    match table.get(key) {
        Some(known @ Item::Value(_)) if !is_dotted(known) => {
            let span = known.span().ok_or_else(|| missing(path))?;
            Ok(with_range(text, span, &value_text(value)?))
        }
        Some(_) => {
            let without = remove_item(text, &[path, &[key]].concat())?;
            set(&without, path, key, value)
        }
        None => {
            let member = format!("{} = {}", key_text(key), value_text(value)?);
            add(text, table, &member).ok_or_else(|| missing(path))
        }
    }
}

fn with_range(text: &str, range: Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..range.start], &text[range.end..])
}

/// Adds a member after the last value of a table. `None` if the table has no place for it.
fn add(text: &str, table: &Item, member: &str) -> Option<String> {
    let members = table.as_table_like()?;
    let end = last_value(members);
    if table.is_inline_table() {
        let (at, member) = match end {
            Some(end) => (end, format!(", {member}")),
            None => (table.span()?.start + 1, format!(" {member} ")),
        };
        return Some(with_range(text, at..at, &member));
    }
    let break_ = line_break(text);
    let (end, prefix) = match end {
        // The start of a line has the indentation, and the table's own name if it is a part of the key.
        Some(end) => {
            let mut values = members
                .iter()
                .filter(|(_, item)| item.is_value() && !is_dotted(item));
            let value = values.next().and_then(|(key, _)| members.key(key)?.span());
            match value.map(|span| span.start) {
                Some(start) => (end, &text[line_start(text, start)..start]),
                None if is_dotted(table) => return None,
                None => (end, ""),
            }
        }
        None if is_dotted(table) => return None,
        None => (table.span()?.start, ""),
    };
    let at = line_end(text, end);
    let line = match text[..at].ends_with('\n') {
        true => format!("{prefix}{member}{break_}"),
        false => format!("{break_}{prefix}{member}"),
    };
    Some(with_range(text, at..at, &line))
}

/// Returns the end of the last value of a table, without those of the tables in it that have a header.
fn last_value(table: &dyn TableLike) -> Option<usize> {
    let ends = table.iter().filter_map(|(_, item)| match item {
        item if is_dotted(item) => last_value(item.as_table_like()?),
        Item::Value(value) => value.span().map(|span| span.end),
        _ => None,
    });
    ends.max()
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |at| at + 1)
}

/// Returns the start of the line after a position, or the end of the text.
fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |end| at + end + 1)
}

fn remove_item(text: &str, path: &[&str]) -> Result<String, EditError> {
    let mut edited = text.to_owned();
    loop {
        let document = parse(&edited)?;
        let item = at(&document, path).ok_or_else(|| missing(path))?;
        if !is_dotted(item) {
            let removed = match item {
                Item::Value(_) => remove_value(&edited, &document, path),
                _ => remove_table(&edited, item),
            };
            return removed.ok_or_else(|| missing(path));
        }
        let first = item.as_table_like().and_then(|table| table.iter().next());
        let (key, _) = first.ok_or_else(|| missing(path))?;
        let without = remove_item(&edited, &[path, &[key]].concat())?;
        if at(&parse(&without)?, path).is_none() {
            return Ok(without);
        }
        edited = without;
    }
}

/// Removes a value with its key: from an inline table with a comma, else with its line.
fn remove_value(text: &str, document: &Document<&str>, path: &[&str]) -> Option<String> {
    let (key, outer) = path.split_last()?;
    let parent = at(document, outer)?;
    let table = parent.as_table_like()?;
    let start = table.key(key)?.span()?.start;
    let end = table.get(key)?.span()?.end;
    if !parent.is_inline_table() {
        let (from, to) = (line_start(text, start), line_end(text, end));
        let from = match text[..to].ends_with('\n') {
            true => from,
            // The file has no line break at its end.
            false => text[..from].trim_end_matches(['\r', '\n']).len(),
        };
        return Some(with_range(text, from..to, ""));
    }
    let others = || table.iter().filter(|(other, _)| other != key);
    let previous = others().filter_map(|(_, item)| item.span().map(|span| span.end));
    let next = others().filter_map(|(other, _)| table.key(other)?.span().map(|span| span.start));
    let range = match (
        previous.filter(|end| *end <= start).max(),
        next.filter(|next| *next >= end).min(),
    ) {
        (Some(previous), _) => previous..end,
        (None, Some(next)) => start..next,
        (None, None) => start..end,
    };
    Some(with_range(text, range, ""))
}

/// Removes a table with a header, and the tables in it.
fn remove_table(text: &str, item: &Item) -> Option<String> {
    let mut start = None;
    let mut end = 0;
    extent(item, &mut start, &mut end);
    let start = start?;
    // The line of the last value ends with its comment.
    let end = line_end(text, end);
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
    Some(with_range(text, from..end, ""))
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
