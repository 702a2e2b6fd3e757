//! Edits of a client's file that add or remove one entry and keep everything else byte for byte.
//!
//! Each format has a function that inserts and one that removes text. [`insert`] and [`remove`] read the result with another
//! parser, and refuse an edit that changes anything but the entry.

mod json;
mod toml;
mod value;
mod yaml;

use std::fmt;

use serde_json::Value;

pub(crate) use self::value::{find, read, string_length};
use super::table::Format;

/// Place of an entry in a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot<'a> {
    /// Format of the file.
    pub(crate) format: Format,
    /// Keys that lead to the section, outermost first.
    pub(crate) section: &'a [&'a str],
    /// Name of the entry.
    pub(crate) name: &'a str,
}

/// Reason for which a file is not edited: a lower-case fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditError(String);

impl EditError {
    fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EditError {}

/// Adds an entry that is not there.
///
/// # Errors
/// If the text cannot be read, has no place for the entry, or the result would differ in more than the entry.
pub(crate) fn insert(text: &str, slot: Slot<'_>, entry: &Value) -> Result<String, EditError> {
    let (mark, text) = split_mark(text);
    let before = read(text, slot.format)?;
    let edited = match slot.format {
        Format::Json => json::insert(text, slot, entry)?,
        Format::Toml => toml::insert(text, slot, entry),
        Format::YamlMap | Format::YamlList => yaml::insert(text, slot, entry)?,
    };
    let expected = value::with_entry(before, slot, entry)?;
    check(&edited, slot, &expected)?;
    Ok(format!("{mark}{edited}"))
}

/// Removes an entry.
///
/// # Errors
/// If the text cannot be read, does not have the entry, or the result would differ in more than the entry.
pub(crate) fn remove(text: &str, slot: Slot<'_>) -> Result<String, EditError> {
    let (mark, text) = split_mark(text);
    let before = read(text, slot.format)?;
    let expected = value::without_entry(before.clone(), slot)?;
    let edited = match slot.format {
        Format::Json => json::remove(text, slot)?,
        Format::Toml => toml::remove(text, slot)?,
        Format::YamlMap | Format::YamlList => yaml::remove(text, slot, &before)?,
    };
    check(&edited, slot, &expected)?;
    Ok(format!("{mark}{edited}"))
}

fn check(edited: &str, slot: Slot<'_>, expected: &Value) -> Result<(), EditError> {
    let is_expected = read(edited, slot.format).is_ok_and(|after| {
        value::without_empty(after, slot.section) == value::without_empty(expected.clone(), slot.section)
    });
    match is_expected {
        true => Ok(()),
        false => Err(EditError::new(format!(
            "the entry `{}` cannot be changed without changing other parts of the file",
            slot.name
        ))),
    }
}

/// Splits the byte order mark off, with which editors on Windows begin a file.
fn split_mark(text: &str) -> (&str, &str) {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => (&text[..'\u{feff}'.len_utf8()], rest),
        None => ("", text),
    }
}

/// Returns the line break that a text uses.
fn line_break(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

#[cfg(test)]
mod tests;
