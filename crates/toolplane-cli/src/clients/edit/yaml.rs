//! YAML. The entry is inserted as lines in block style, and changed line by line, so that comments and order stay. A section in
//! flow style is refused.

use std::ops::Range;

use raw_json::RawJson;
use serde_json::Value;

use super::{Change, EditError, Slot, line_break, string_length, value};
use crate::{clients::table::Format, output::yaml::yaml};

/// Indentation where the file shows none.
const INDENT: usize = 2;

/// Lines of a section below its key.
struct Block {
    /// Number of the line with the key.
    key: usize,
    /// Place in that line of an empty collection. Empty if it has none: the place for one.
    value: Range<usize>,
    /// Number of the line after the last one with content.
    end: usize,
    /// Indentation of its entries.
    indent: usize,
    /// `true` if it has no entry.
    is_empty: bool,
}

/// Lines of an entry.
struct Found {
    /// From the first line to the one after the last with content.
    lines: Range<usize>,
    /// `true` if the section has no other entry.
    is_only: bool,
}

/// Lines of a text, each with its line break.
struct Text {
    lines: Vec<String>,
    break_: &'static str,
    /// `true` if the text has no line break at its end.
    is_open: bool,
}

impl Text {
    fn new(text: &str) -> Self {
        let break_ = line_break(text);
        let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        let is_open = lines.last().is_some_and(|line| !line.ends_with('\n'));
        if let Some(last) = lines.last_mut().filter(|_| is_open) {
            last.push_str(break_);
        }
        Self {
            lines,
            break_,
            is_open,
        }
    }

    fn into_string(self) -> String {
        let mut written = self.lines.concat();
        if self.is_open && written.ends_with(self.break_) {
            written.truncate(written.len() - self.break_.len());
        }
        written
    }
}

pub(super) fn insert(text: &str, slot: Slot<'_>, entry: &Value, root: &Value) -> Result<String, EditError> {
    let mut text = Text::new(text);
    let key = section(slot)?;
    match block(&text.lines, key, root)? {
        Some(block) => {
            // An empty collection is written as nothing below its key.
            if block.is_empty {
                text.lines[block.key].replace_range(block.value, "");
            }
            let entry = entry_lines(slot, entry, block.indent, text.break_);
            text.lines.splice(block.end..block.end, entry);
        }
        None => {
            let mut added = vec![format!("{key}:{}", text.break_)];
            added.extend(entry_lines(slot, entry, INDENT, text.break_));
            // A document can be closed by dots.
            let last = text.lines.iter().rposition(|line| is_content(line));
            let at = last.filter(|last| text.lines[*last].trim_end() == "...");
            let at = at.unwrap_or(text.lines.len());
            text.lines.splice(at..at, added);
        }
    }
    Ok(text.into_string())
}

pub(super) fn replace(
    text: &str,
    slot: Slot<'_>,
    entry: &Value,
    changes: &[Change<'_>],
    root: &Value,
) -> Result<String, EditError> {
    let mut text = Text::new(text);
    let key = section(slot)?;
    let block = block(&text.lines, key, root)?.ok_or_else(|| missing(slot))?;
    let found = find(&text.lines, &block, slot, root).ok_or_else(|| missing(slot))?;
    let range = found.lines;
    let Some((first, column)) = body(&text.lines, &range, slot) else {
        let line = &text.lines[range.start];
        let comment = line[code_length(line)..].trim_end().to_owned();
        let mut written = entry_lines(slot, entry, block.indent, text.break_);
        if range.len() == 1 && slot.format == Format::YamlMap {
            let end = written[0].trim_end().len();
            written[0].insert_str(end, &comment);
        }
        text.lines.splice(range, written);
        return Ok(text.into_string());
    };
    // The dash of a list's item is put aside, so that all members begin in the same way.
    let dash = text.lines[first][..column].to_owned();
    text.lines[first].replace_range(..column, &" ".repeat(column));
    let mut lines: Vec<String> = text.lines[first..range.end].to_vec();
    for change in changes {
        apply(&mut lines, column, *change, text.break_).ok_or_else(|| missing(slot))?;
    }
    let member = lines.iter_mut().find(|line| is_content(line));
    let member = member.filter(|line| indent_of(line) >= column);
    member
        .ok_or_else(|| missing(slot))?
        .replace_range(..column, &dash);
    text.lines.splice(first..range.end, lines);
    Ok(text.into_string())
}

pub(super) fn remove(text: &str, slot: Slot<'_>, root: &Value) -> Result<String, EditError> {
    let mut text = Text::new(text);
    let key = section(slot)?;
    let block = block(&text.lines, key, root)?.ok_or_else(|| missing(slot))?;
    let found = find(&text.lines, &block, slot, root).ok_or_else(|| missing(slot))?;
    text.lines.drain(found.lines);
    if found.is_only {
        let empty = match slot.format {
            Format::YamlList => " []",
            _ => " {}",
        };
        text.lines[block.key].insert_str(block.value.start, empty);
    }
    Ok(text.into_string())
}

fn missing(slot: Slot<'_>) -> EditError {
    EditError::with_hint(
        format!("it has no entry `{}` in block style", slot.name),
        "edit the entry by hand",
    )
}

/// Returns the only key of the section: those of the known clients are at the root.
fn section<'a>(slot: Slot<'a>) -> Result<&'a str, EditError> {
    match slot.section {
        [key] => Ok(*key),
        _ => Err(EditError::new("sections within sections of YAML are not edited")),
    }
}

fn entry_lines(slot: Slot<'_>, entry: &Value, indent: usize, break_: &str) -> Vec<String> {
    let document = match slot.format {
        Format::YamlList => serde_json::json!([entry]),
        _ => serde_json::json!({slot.name: entry}),
    };
    written(document, indent, break_)
}

fn written(document: Value, indent: usize, break_: &str) -> Vec<String> {
    let text = yaml(&RawJson::from(document));
    let lines = text.lines().map(|line| format!("{:indent$}{line}{break_}", ""));
    lines.collect()
}

/// Finds the section with this key at the root.
fn block(lines: &[String], key: &str, root: &Value) -> Result<Option<Block>, EditError> {
    let content = content(lines);
    let found = (0..lines.len())
        .filter(|line| content[*line] && indent_of(&lines[*line]) == 0)
        .find_map(|line| Some((line, key_of(&lines[line]).filter(|(name, _)| name == key)?.1)));
    let Some((at, after)) = found else {
        let first = lines.iter().find(|line| is_content(line));
        let is_flow = first.is_some_and(|line| line.starts_with('{'));
        return match is_flow || root.get(key).is_some() {
            true => Err(EditError::with_hint(
                format!("it is written in a style in which the lines of `{key}` are not found"),
                format!("write `{key}:` at the start of a line, or edit the entry by hand"),
            )),
            false => Ok(None),
        };
    };
    let code = code_length(&lines[at]).max(after);
    let value = lines[at][after..code].trim();
    let is_bare = is_property(value);
    if !is_bare && !matches!(value, "{}" | "[]" | "~" | "null") {
        return Err(EditError::with_hint(
            format!("`{key}` is not written in block style"),
            format!("write each entry on lines of its own below `{key}:`, or edit the entry by hand"),
        ));
    }
    let mut block = Block {
        key: at,
        value: if is_bare { code..code } else { after..code },
        end: at + 1,
        indent: INDENT,
        is_empty: true,
    };
    for (number, line) in lines.iter().enumerate().skip(at + 1) {
        if !content[number] {
            continue;
        }
        let indent = indent_of(line);
        let is_kept = line.trim().is_empty();
        let is_item = line.trim_start().starts_with("- ") || line.trim() == "-";
        if indent == 0 && !is_item && !is_kept || !is_bare {
            break;
        }
        if block.is_empty {
            block.indent = indent;
            block.is_empty = false;
        }
        block.end = number + 1;
    }
    Ok(Some(block))
}

/// Finds the entry in a section.
fn find(lines: &[String], block: &Block, slot: Slot<'_>, root: &Value) -> Option<Found> {
    let content = content(lines);
    let starts: Vec<usize> = (block.key + 1..block.end)
        .filter(|line| content[*line] && indent_of(&lines[*line]) == block.indent)
        .filter(|line| slot.format == Format::YamlMap || lines[*line].trim_start().starts_with('-'))
        .collect();
    let index = match slot.format {
        Format::YamlList => value::position(root, slot).filter(|index| *index < starts.len()),
        _ => starts
            .iter()
            .position(|line| key_of(&lines[*line]).is_some_and(|(key, _)| key == slot.name)),
    }?;
    let next = starts.get(index + 1).copied().unwrap_or(block.end);
    Some(Found {
        lines: starts[index]..end(&content, starts[index]..next),
        is_only: starts.len() == 1,
    })
}

/// Returns the number of the line after the last one with content. Comments above the next entry belong to it.
fn end(content: &[bool], range: Range<usize>) -> usize {
    let last = (range.start + 1..range.end).rev().find(|line| content[*line]);
    last.map_or(range.start + 1, |line| line + 1)
}

/// Returns the first line with members of an entry, and the column at which they begin. `None` if it has none in block style.
fn body(lines: &[String], range: &Range<usize>, slot: Slot<'_>) -> Option<(usize, usize)> {
    let line = &lines[range.start];
    let after = match slot.format {
        Format::YamlList => indent_of(line) + 1,
        _ => key_of(line)?.1,
    };
    let code = &line[after..code_length(line).max(after)];
    if is_property(code.trim()) {
        let first = (range.start + 1..range.end).find(|line| is_content(&lines[*line]))?;
        let column = indent_of(&lines[first]);
        return (column > indent_of(line) && key_of(&lines[first]).is_some()).then_some((first, column));
    }
    let column = after + indent_of(code);
    let is_key = slot.format == Format::YamlList && !code.trim_start().starts_with(['{', '&', '!', '*', '?']);
    (is_key && key_of(&line[column..]).is_some()).then_some((range.start, column))
}

/// Changes a member of an entry. `None` if it cannot be found.
fn apply(lines: &mut Vec<String>, column: usize, change: Change<'_>, break_: &str) -> Option<()> {
    let content = content(lines);
    let key_at = |line: usize| {
        let is_member = content[line] && indent_of(&lines[line]) == column;
        is_member.then(|| key_of(&lines[line])).flatten()
    };
    let starts: Vec<(usize, String, usize)> = (0..lines.len())
        .filter_map(|line| key_at(line).map(|(key, after)| (line, key, after)))
        .collect();
    let (Change::Set(key, _) | Change::Remove(key)) = change;
    let index = starts.iter().position(|(_, name, _)| name == key);
    let range = index.map(|index| {
        let next = starts.get(index + 1).map_or(lines.len(), |(line, ..)| *line);
        starts[index].0..end(&content, starts[index].0..next)
    });
    match (change, index, range) {
        (Change::Remove(_), Some(_), Some(range)) => {
            lines.drain(range);
        }
        (Change::Set(_, value), Some(index), Some(range)) => {
            let after = starts[index].2;
            let line = &lines[range.start];
            let code = code_length(line).max(after);
            let mut new = written(serde_json::json!({key: value}), column, break_);
            // The spelling of the key, its comment and the style of a list on one line stay.
            let head = &line[..after];
            let comment = line[code..].trim_end();
            let rest = match value {
                Value::Array(items) if range.len() == 1 && line[after..code].trim().starts_with('[') => {
                    new.truncate(1);
                    let items: Vec<String> = items.iter().map(Value::to_string).collect();
                    format!(" [{}]", items.join(", "))
                }
                _ => new[0][key_of(&new[0])?.1..].trim_end().to_owned(),
            };
            new[0] = format!("{head}{rest}{comment}{break_}");
            lines.splice(range, new);
        }
        (Change::Set(_, value), _, _) => {
            lines.extend(written(serde_json::json!({key: value}), column, break_));
        }
        (Change::Remove(_), _, _) => return None,
    }
    Some(())
}

/// Reads the key with which a line begins. Returns it with the position after its colon.
fn key_of(line: &str) -> Option<(String, usize)> {
    let indent = indent_of(line);
    let text = &line[indent..];
    let (key, length) = match text.chars().next()? {
        '"' => {
            let length = string_length(text);
            (serde_json::from_str(&text[..length]).ok()?, length)
        }
        '\'' => {
            let end = text[1..].replace("''", "\0\0").find('\'')? + 1;
            (text[1..end].replace("''", "'"), end + 1)
        }
        _ => {
            let mut colons = text.match_indices(':');
            let (at, _) = colons.find(|(at, _)| is_separator(&text[at + 1..]))?;
            (text[..at].trim_end().to_owned(), at)
        }
    };
    let rest = &text[length..];
    let spaces = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    let after = rest[spaces..].strip_prefix(':')?;
    is_separator(after).then_some((key, indent + length + spaces + 1))
}

/// Returns `true` if a text begins as it can after the colon of a key.
fn is_separator(text: &str) -> bool {
    text.is_empty() || text.starts_with([' ', '\t', '\r', '\n'])
}

/// Returns `true` if the rest of a line has no value, but for the anchor or tag of the lines below.
fn is_property(value: &str) -> bool {
    value.is_empty() || value.starts_with(['&', '!']) && !value.contains([' ', '\t'])
}

/// Returns the length of a line without its comment and the whitespace before it.
fn code_length(line: &str) -> usize {
    let mut quote = None;
    let mut is_escaped = false;
    let mut previous = ' ';
    for (at, char) in line.char_indices() {
        match (quote, char) {
            _ if is_escaped => is_escaped = false,
            (Some('"'), '\\') => is_escaped = true,
            (Some(open), _) if open == char => quote = None,
            (None, '#') if previous.is_whitespace() => return line[..at].trim_end().len(),
            // A quotation mark within a plain text is a character; a doubled one continues the quotation.
            (None, '"' | '\'') if previous.is_whitespace() || "[{,:'".contains(previous) => {
                quote = Some(char);
            }
            _ => {}
        }
        previous = char;
    }
    line.trim_end().len()
}

/// Marks the lines with content: all but comments and empty lines. The lines of a block scalar are content (YAML 1.2.2, 8.1).
fn content(lines: &[String]) -> Vec<bool> {
    let is_blank = |line: &String| line.trim().is_empty();
    let mut marks: Vec<bool> = lines.iter().map(|line| is_content(line)).collect();
    let mut number = 0;
    while number < lines.len() {
        let header = &lines[number];
        let scalar = marks[number].then(|| scalar_header(header)).flatten();
        number += 1;
        let Some(scalar) = scalar else { continue };
        let outer = indent_of(header) + 1;
        let first = lines[number..].iter().find(|line| !is_blank(line));
        let indent = match scalar.contains(|char: char| char.is_ascii_digit()) {
            true => outer,
            false => first.map_or(outer, |line| indent_of(line).max(outer)),
        };
        while number < lines.len() && (is_blank(&lines[number]) || indent_of(&lines[number]) >= indent) {
            marks[number] = !is_blank(&lines[number]) || scalar.contains('+');
            number += 1;
        }
    }
    marks
}

/// Returns the indicators of the block scalar that a line opens.
fn scalar_header(line: &str) -> Option<&str> {
    let code = &line[..code_length(line)];
    let (_, last) = code.rsplit_once([' ', '\t'])?;
    let indicators = last.strip_prefix(['|', '>'])?;
    let is_header = indicators
        .chars()
        .all(|char| matches!(char, '+' | '-') || char.is_ascii_digit());
    is_header.then_some(indicators)
}

fn is_content(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#')
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}
