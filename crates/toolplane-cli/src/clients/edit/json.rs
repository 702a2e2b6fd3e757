//! JSON with comments and trailing commas. Only the text of the entry, or of its members that change, and of one comma is inserted,
//! replaced or removed.

use std::ops::Range;

use jsonc_parser::{
    CollectOptions, ParseOptions,
    ast::{Object, Value as Node},
    common::Ranged,
    parse_to_ast,
};
use serde::Serialize as _;
use serde_json::{Map, Value, ser::PrettyFormatter};

use super::{Change, EditError, Slot, line_break};

/// JSON with comments and trailing commas, as clients write it; nothing else of JSON5.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};
/// Indentation where the file shows none.
const INDENT: &str = "  ";

/// Text that is inserted at a position, or replaces a range.
struct Edit {
    range: Range<usize>,
    text: String,
}

impl Edit {
    fn insert(at: usize, text: impl Into<String>) -> Self {
        Self {
            range: at..at,
            text: text.into(),
        }
    }

    fn replace(range: Range<usize>, text: String) -> Self {
        Self { range, text }
    }

    fn remove(range: Range<usize>) -> Self {
        Self::replace(range, String::new())
    }
}

pub(super) fn insert(text: &str, slot: Slot<'_>, entry: &Value) -> Result<String, EditError> {
    let root = root(text)?;
    let Some(mut object) = root.as_ref() else {
        let content = nested(slot.section, slot.name, entry);
        let written = pretty(&Value::Object(content), INDENT).replace('\n', line_break(text));
        // Comments of a file without a value stay above it.
        return Ok(match text.trim().is_empty() {
            true => format!("{written}{}", line_break(text)),
            false => format!("{text}{}{written}{}", line_break(text), line_break(text)),
        });
    };
    let mut missing = slot.section;
    while let Some((key, inner)) = missing.split_first() {
        match member(object, key)? {
            None => break,
            Some(Node::Object(found)) => object = found,
            Some(Node::NullKeyword(null)) => {
                let section = Value::Object(nested(inner, slot.name, entry));
                let indent = line_indent(text, null.start());
                let section = pretty(&section, &unit(text, root.as_ref()))
                    .replace('\n', &format!("{}{indent}", line_break(text)));
                return Ok(apply(
                    text,
                    vec![Edit::replace(null.start()..null.end(), section)],
                ));
            }
            Some(_) => return Err(EditError::new(format!("`{key}` is not an object"))),
        }
        missing = inner;
    }
    let (key, value) = match missing.split_first() {
        None => (slot.name, entry.clone()),
        Some((key, inner)) => (*key, Value::Object(nested(inner, slot.name, entry))),
    };
    let unit = unit(text, root.as_ref());
    Ok(apply(text, insertion(text, object, key, &value, &unit)))
}

pub(super) fn replace(text: &str, slot: Slot<'_>, changes: &[Change<'_>]) -> Result<String, EditError> {
    let mut edited = text.to_owned();
    for change in changes {
        let root = root(&edited)?;
        let object = section(root.as_ref(), slot)?;
        let Some(Node::Object(entry)) = member(object, slot.name)? else {
            return Err(missing(slot));
        };
        let edits = match *change {
            Change::Set(key, value) => match member(entry, key)? {
                Some(known) => {
                    let (start, end) = (known.start(), known.end());
                    vec![Edit::replace(
                        start..end,
                        replacement(&edited, start..end, entry, value),
                    )]
                }
                None => insertion(&edited, entry, key, value, &unit(&edited, root.as_ref())),
            },
            Change::Remove(key) => removal(&edited, entry, index(entry, key).ok_or_else(|| missing(slot))?),
        };
        edited = apply(&edited, edits);
    }
    Ok(edited)
}

pub(super) fn remove(text: &str, slot: Slot<'_>) -> Result<String, EditError> {
    let root = root(text)?;
    let object = section(root.as_ref(), slot)?;
    member(object, slot.name)?.ok_or_else(|| missing(slot))?;
    let index = index(object, slot.name).ok_or_else(|| missing(slot))?;
    Ok(apply(text, removal(text, object, index)))
}

fn missing(slot: Slot<'_>) -> EditError {
    EditError::new(format!("it has no entry `{}`", slot.name))
}

/// Returns the object with the entries.
fn section<'a, 'b>(root: Option<&'b Object<'a>>, slot: Slot<'_>) -> Result<&'b Object<'a>, EditError> {
    let mut object = root.ok_or_else(|| missing(slot))?;
    for key in slot.section {
        match member(object, key)? {
            Some(Node::Object(found)) => object = found,
            _ => return Err(missing(slot)),
        }
    }
    Ok(object)
}

fn index(object: &Object<'_>, key: &str) -> Option<usize> {
    object
        .properties
        .iter()
        .position(|property| property.name.as_str() == key)
}

/// Formats the value that replaces the one of a range: on one line if that one or the whole entry is.
fn replacement(text: &str, range: Range<usize>, entry: &Object<'_>, value: &Value) -> String {
    let known = &text[range.clone()];
    let is_one_line = !known.contains('\n') && known.starts_with('[') && known.contains('"');
    match value {
        Value::Array(items) if is_one_line => {
            let items: Vec<String> = items.iter().map(Value::to_string).collect();
            format!("[{}]", items.join(", "))
        }
        _ if own_line_indent(text, entry.properties[0].start()).is_none() => value.to_string(),
        _ => {
            let indent = line_indent(text, range.start);
            let outer = line_indent(text, entry.start());
            let unit = indent.strip_prefix(outer).filter(|unit| !unit.is_empty());
            pretty(value, unit.unwrap_or(INDENT)).replace('\n', &format!("{}{indent}", line_break(text)))
        }
    }
}

fn root(text: &str) -> Result<Option<Object<'_>>, EditError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS);
    let parsed = parsed.map_err(|error| EditError::new(format!("it is not valid JSON: {error}")))?;
    match parsed.value {
        Some(Node::Object(root)) => Ok(Some(root)),
        Some(_) => Err(EditError::new("its content is not an object")),
        None => Ok(None),
    }
}

/// Returns the member of an object. Refuses a key that is there twice: clients differ in which one they use.
fn member<'a, 'b>(object: &'b Object<'a>, key: &str) -> Result<Option<&'b Node<'a>>, EditError> {
    let mut found = object
        .properties
        .iter()
        .filter(|property| property.name.as_str() == key);
    let first = found.next().map(|property| &property.value);
    match found.next() {
        Some(_) => Err(EditError::new(format!("it has the key `{key}` twice"))),
        None => Ok(first),
    }
}

/// Returns the section with the entry as its only one.
fn nested(section: &[&str], name: &str, entry: &Value) -> Map<String, Value> {
    let innermost = Map::from_iter([(name.to_owned(), entry.clone())]);
    section.iter().rev().fold(innermost, |inner, key| {
        Map::from_iter([((*key).to_owned(), Value::Object(inner))])
    })
}

/// Returns the indentation of one level: that of the first member of the root which has its own line.
fn unit(text: &str, root: Option<&Object<'_>>) -> String {
    let first = root.and_then(|root| root.properties.first());
    let indent = first.and_then(|first| own_line_indent(text, first.start()));
    indent
        .filter(|indent| !indent.is_empty())
        .unwrap_or(INDENT)
        .to_owned()
}

/// Returns the whitespace before a position if nothing else is before it on its line.
fn own_line_indent(text: &str, at: usize) -> Option<&str> {
    let start = text[..at].rfind('\n')? + 1;
    let before = &text[start..at];
    before
        .bytes()
        .all(|byte| matches!(byte, b' ' | b'\t'))
        .then_some(before)
}

/// Returns the indentation of the line of a position.
fn line_indent(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |at| at + 1);
    let line = &text[start..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

fn insertion(text: &str, object: &Object<'_>, key: &str, value: &Value, unit: &str) -> Vec<Edit> {
    let break_ = line_break(text);
    let name = Value::from(key);
    let indented = |indent: &str| {
        let value = pretty(value, unit).replace('\n', &format!("{break_}{indent}"));
        format!("{break_}{indent}{name}: {value}")
    };
    let Some(last) = object.properties.last() else {
        let outer = line_indent(text, object.start());
        let inner = &text[object.start() + 1..object.end() - 1];
        let mut edits = vec![Edit::insert(
            object.start() + 1,
            indented(&format!("{outer}{unit}")),
        )];
        if !inner.contains('\n') {
            edits.push(Edit::insert(object.end() - 1, format!("{break_}{outer}")));
        }
        return edits;
    };
    let comma = comma_after(text, last.end());
    let Some(indent) = own_line_indent(text, object.properties[0].start()) else {
        let written = format!(" {name}: {value}");
        return match comma {
            Some(comma) => vec![Edit::insert(comma + 1, format!("{written},"))],
            None => vec![Edit::insert(last.end(), format!(",{written}"))],
        };
    };
    let at = line_end(text, comma.map_or(last.end(), |comma| comma + 1));
    match comma {
        Some(_) => vec![Edit::insert(at, format!("{},", indented(indent)))],
        None => vec![Edit::insert(last.end(), ","), Edit::insert(at, indented(indent))],
    }
}

fn removal(text: &str, object: &Object<'_>, index: usize) -> Vec<Edit> {
    let property = &object.properties[index];
    let (start, end) = (property.start(), property.end());
    let comma = comma_after(text, end);
    let before = text[..start].trim_end_matches([' ', '\t']);
    // A member on its own line goes with the line break before it. Another member on the line must not end up in a comment.
    let after = comma.map_or(end, |comma| comma + 1);
    let rest = text[after..].trim_start_matches([' ', '\t']);
    let is_alone = rest.is_empty() || rest.starts_with(['\r', '\n', '/', '}']);
    let from = match before.strip_suffix('\n').filter(|_| is_alone) {
        Some(line) => line.strip_suffix('\r').unwrap_or(line).len(),
        None => before.len(),
    };
    let is_last = index + 1 == object.properties.len();
    if object.properties.len() == 1 {
        let to = comma.map_or(end, |comma| comma + 1);
        let rest = &text[to..object.end() - 1];
        let is_bare = from == object.start() + 1 && rest.bytes().all(|byte| byte.is_ascii_whitespace());
        let to = if is_bare { object.end() - 1 } else { to };
        return vec![Edit::remove(from..to)];
    }
    match (comma, is_last) {
        (Some(comma), _) => vec![Edit::remove(from..comma + 1)],
        (None, _) => {
            let previous = &object.properties[index - 1];
            let comma = comma_after(text, previous.end()).unwrap_or(previous.end());
            vec![
                Edit::remove(comma..comma + 1),
                Edit::remove(from.max(comma + 1)..end),
            ]
        }
    }
}

/// Returns the position of the comma that follows a value, behind comments.
fn comma_after(text: &str, at: usize) -> Option<usize> {
    let mut at = at;
    loop {
        let rest = &text[at..];
        at += match rest.chars().next()? {
            ',' => return Some(at),
            '/' if rest.starts_with("//") => rest.find('\n')?,
            '/' if rest.starts_with("/*") => rest.find("*/")? + 2,
            space if space.is_ascii_whitespace() => 1,
            _ => return None,
        };
    }
}

/// Returns the end of the comments that follow a position on its line, or the position.
fn line_end(text: &str, at: usize) -> usize {
    let mut end = at;
    let mut next = at;
    loop {
        let rest = &text[next..];
        let spaces = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let comment = &rest[spaces..];
        let length = if comment.starts_with("//") {
            comment.find(['\r', '\n']).unwrap_or(comment.len())
        } else if comment.starts_with("/*") {
            match comment.find("*/") {
                Some(length) if !comment[..length].contains('\n') => length + 2,
                _ => return end,
            }
        } else {
            return end;
        };
        next += spaces + length;
        end = next;
    }
}

fn apply(text: &str, edits: Vec<Edit>) -> String {
    let mut edited = String::with_capacity(text.len() + 256);
    let mut at = 0;
    for edit in edits {
        edited.push_str(&text[at..edit.range.start]);
        edited.push_str(&edit.text);
        at = edit.range.end;
    }
    edited.push_str(&text[at..]);
    edited
}

/// Formats a value with this indentation.
fn pretty(value: &Value, unit: &str) -> String {
    let mut written = Vec::new();
    let formatter = PrettyFormatter::with_indent(unit.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut written, formatter);
    match value.serialize(&mut serializer) {
        Ok(()) => String::from_utf8(written).unwrap_or_default(),
        Err(_) => value.to_string(),
    }
}
