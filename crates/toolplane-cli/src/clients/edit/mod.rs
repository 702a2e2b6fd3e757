//! Edits of a client's file that add, change or remove one entry and keep everything else byte for byte.
//!
//! Each format has functions that insert, replace and remove text. [`insert`], [`replace`] and [`remove`] read the result as a
//! value with its types, and refuse an edit that changes anything but the entry.

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

/// Change of one member of an entry.
#[derive(Debug, Clone, Copy)]
enum Change<'a> {
    /// Gives a key this value. Adds the key if it is absent.
    Set(&'a str, &'a Value),
    /// Removes a key.
    Remove(&'a str),
}

/// Reason for which a file is not edited: a lower-case fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditError {
    message: String,
    hint: String,
}

impl EditError {
    /// Makes the error of a file that is wrong.
    fn new(message: impl Into<String>) -> Self {
        Self::with_hint(message, "correct the file, or add the entry by hand")
    }

    /// Makes the error of a valid file in a form that is not edited.
    fn with_hint(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// Returns the action that solves the problem.
    pub(crate) fn hint(&self) -> &str {
        &self.hint
    }
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
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
        Format::Toml => toml::insert(text, slot, entry)?,
        Format::YamlMap | Format::YamlList => yaml::insert(text, slot, entry, &before)?,
    };
    let expected = value::with_entry(before, slot, entry)?;
    check(&edited, slot, &expected)?;
    Ok(format!("{mark}{edited}"))
}

/// Replaces an entry that is there. Only the members that differ are changed; the rest of the entry stays as it is written.
///
/// # Errors
/// If the text cannot be read, does not have the entry, or the result would differ in more than the entry.
pub(crate) fn replace(text: &str, slot: Slot<'_>, entry: &Value) -> Result<String, EditError> {
    let (mark, text) = split_mark(text);
    let before = read(text, slot.format)?;
    let known =
        find(&before, slot).ok_or_else(|| EditError::new(format!("it has no entry `{}`", slot.name)))?;
    let changes = value::changes(known, entry)
        .ok_or_else(|| EditError::new(format!("the entry `{}` is not an object", slot.name)))?;
    let edited = match slot.format {
        Format::Json => json::replace(text, slot, &changes)?,
        Format::Toml => toml::replace(text, slot, &changes)?,
        Format::YamlMap | Format::YamlList => yaml::replace(text, slot, entry, &changes, &before)?,
    };
    let expected = value::with_replaced(before, slot, entry)?;
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
        false => Err(EditError::with_hint(
            format!(
                "the entry `{}` cannot be changed without changing other parts of the file",
                slot.name
            ),
            "edit the entry by hand",
        )),
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
