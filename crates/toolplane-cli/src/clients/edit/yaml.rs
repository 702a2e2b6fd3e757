//! YAML. The entry is inserted as lines in block style, so that comments and order stay; flow style is refused.

use raw_json::RawJson;
use serde_json::Value;

use super::{EditError, Slot, line_break, value};
use crate::{clients::table::Format, output::yaml::yaml};

/// Indentation where the file shows none.
const INDENT: usize = 2;

/// Lines of a section below its key.
struct Block {
    /// Number of the line with the key.
    key: usize,
    /// Number of the line after the last one with content.
    end: usize,
    /// Indentation of its entries.
    indent: usize,
    /// `true` if it has no entry.
    is_empty: bool,
}

pub(super) fn insert(text: &str, slot: Slot<'_>, entry: &Value) -> Result<String, EditError> {
    let break_ = line_break(text);
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let is_open = lines.last().is_some_and(|line| !line.ends_with('\n'));
    if let Some(last) = lines.last_mut().filter(|_| is_open) {
        last.push_str(break_);
    }
    let key = section(slot)?;
    match block(&lines, key)? {
        Some(block) => {
            // An empty collection is written as nothing below its key.
            if block.is_empty {
                lines[block.key] = bare_key(&lines[block.key], key, break_);
            }
            let entry = entry_lines(slot, entry, block.indent, break_);
            lines.splice(block.end..block.end, entry);
        }
        None => {
            lines.push(format!("{key}:{break_}"));
            lines.extend(entry_lines(slot, entry, INDENT, break_));
        }
    }
    let mut written = lines.concat();
    if is_open {
        written.truncate(written.len() - break_.len());
    }
    Ok(written)
}

pub(super) fn remove(text: &str, slot: Slot<'_>, root: &Value) -> Result<String, EditError> {
    let missing = || EditError::new(format!("it has no entry `{}` in block style", slot.name));
    let break_ = line_break(text);
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let is_open = lines.last().is_some_and(|line| !line.ends_with('\n'));
    let key = section(slot)?;
    let block = block(&lines, key)?.ok_or_else(missing)?;
    let starts: Vec<usize> = (block.key + 1..block.end)
        .filter(|line| is_content(&lines[*line]) && indent_of(&lines[*line]) == block.indent)
        .filter(|line| slot.format == Format::YamlMap || lines[*line].trim_start().starts_with('-'))
        .collect();
    let index = match slot.format {
        Format::YamlList => value::position(root, slot).filter(|index| *index < starts.len()),
        _ => starts
            .iter()
            .position(|line| has_key(lines[*line].trim_start(), slot.name)),
    };
    let index = index.ok_or_else(missing)?;
    let next = starts.get(index + 1).copied().unwrap_or(block.end);
    // Comments above the next entry belong to it.
    let end = (starts[index] + 1..next)
        .rev()
        .find(|line| is_content(&lines[*line]));
    let end = end.map_or(starts[index] + 1, |line| line + 1);
    lines.drain(starts[index]..end);
    if starts.len() == 1 {
        let empty = if slot.format == Format::YamlList {
            "[]"
        } else {
            "{}"
        };
        let written = lines[block.key].trim_end().len();
        lines[block.key].insert_str(written, &format!(" {empty}"));
    }
    let mut written = lines.concat();
    if is_open && written.ends_with('\n') {
        written.truncate(written.len() - break_.len());
    }
    Ok(written)
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
    let text = yaml(&RawJson::from(document));
    let lines = text.lines().map(|line| format!("{:indent$}{line}{break_}", ""));
    lines.collect()
}

/// Finds the section with this key at the root.
fn block(lines: &[String], key: &str) -> Result<Option<Block>, EditError> {
    let Some(at) = lines.iter().position(|line| has_key(line, key)) else {
        return Ok(None);
    };
    let value = lines[at][key.len() + 1..].trim();
    let value = value.split_once(" #").map_or(value, |(value, _)| value.trim());
    let is_bare = value.is_empty() || value.starts_with('#');
    if !is_bare && !matches!(value, "{}" | "[]" | "~" | "null") {
        return Err(EditError::new(format!("`{key}` is not written in block style")));
    }
    let mut block = Block {
        key: at,
        end: at + 1,
        indent: INDENT,
        is_empty: true,
    };
    for (number, line) in lines.iter().enumerate().skip(at + 1) {
        if !is_content(line) {
            continue;
        }
        let indent = indent_of(line);
        let is_item = line.trim_start().starts_with("- ") || line.trim() == "-";
        if indent == 0 && !is_item || !is_bare {
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

/// Returns the line of a key without the empty collection after it. A comment stays.
fn bare_key(line: &str, key: &str, break_: &str) -> String {
    let comment = line
        .find(" #")
        .map(|at| line[at..].trim_end())
        .unwrap_or_default();
    format!("{key}:{comment}{break_}")
}

fn has_key(line: &str, key: &str) -> bool {
    let rest = line.strip_prefix(key).and_then(|rest| rest.strip_prefix(':'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

fn is_content(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#')
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}
