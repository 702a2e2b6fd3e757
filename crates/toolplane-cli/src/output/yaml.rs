use std::fmt::Write;

use raw_json::{JsonKind, RawJson};
use serde_json::value::RawValue;

/// Formats a value as YAML 1.2. Numbers keep their digits. A text that YAML would read as another type is quoted as in
/// JSON, of which YAML is a superset.
pub(crate) fn yaml(value: &RawJson) -> String {
    let mut text = String::new();
    node(&mut text, value, 0, Position::Start);
    text
}

/// Position of a value, which determines the whitespace before it.
#[derive(Clone, Copy, PartialEq)]
enum Position {
    Start,
    Key,
    Item,
}

fn node(text: &mut String, value: &RawJson, indent: usize, position: Position) {
    match value.kind() {
        JsonKind::Object if value.members().next().is_some() => mapping(text, value, indent, position),
        JsonKind::Array => {
            let items = value.to::<Vec<&RawValue>>().unwrap_or_default();
            if items.is_empty() {
                line(text, "[]", position);
            } else {
                sequence(text, &items, indent, position);
            }
        }
        JsonKind::Object => line(text, "{}", position),
        JsonKind::String => {
            let content = value.string();
            match content.as_deref() {
                Some(content) if is_block(content) => block(text, content, indent, position),
                Some(content) if is_plain(content) => line(text, content, position),
                Some(content) => line(text, &quoted(content), position),
                // A lone surrogate has no character: its escape is written.
                None => line(text, value.as_str(), position),
            }
        }
        _ => line(text, value.as_str(), position),
    }
}

fn line(text: &mut String, content: &str, position: Position) {
    if position != Position::Start {
        text.push(' ');
    }
    text.push_str(content);
    text.push('\n');
}

fn mapping(text: &mut String, value: &RawJson, indent: usize, position: Position) {
    if position == Position::Key {
        text.push('\n');
    }
    for (index, (key, member)) in value.members().enumerate() {
        // The first member of an item follows its dash.
        if index == 0 && position == Position::Item {
            text.push(' ');
        } else {
            spaces(text, indent);
        }
        if is_plain(&key) {
            text.push_str(&key);
        } else {
            text.push_str(&quoted(&key));
        }
        text.push(':');
        node(text, &member, indent + 2, Position::Key);
    }
}

fn sequence(text: &mut String, items: &[&RawValue], indent: usize, position: Position) {
    if position != Position::Start {
        text.push('\n');
    }
    for item in items {
        spaces(text, indent);
        text.push('-');
        let item =
            RawJson::parse(item.get().to_owned()).expect("a part of a value is a value, and less deep");
        node(text, &item, indent + 2, Position::Item);
    }
}

/// Writes a text of several lines as a block scalar.
fn block(text: &mut String, content: &str, indent: usize, position: Position) {
    let keep = if content.ends_with('\n') { "|" } else { "|-" };
    line(text, keep, position);
    for row in content.trim_end_matches('\n').split('\n') {
        if !row.is_empty() {
            spaces(text, indent.max(2));
            text.push_str(row);
        }
        text.push('\n');
    }
}

fn spaces(text: &mut String, n: usize) {
    text.extend(std::iter::repeat_n(' ', n));
}

/// Quotes a text as JSON does, and escapes hidden characters and those that YAML refuses or takes for line breaks.
fn quoted(content: &str) -> String {
    let mut quoted = String::new();
    for c in RawJson::from(content).as_str().chars() {
        match c {
            c if tool_scan::is_hidden(c) => {
                let code = u32::from(c);
                let _ = match code {
                    0..=0xffff => write!(quoted, "\\u{code:04x}"),
                    _ => write!(quoted, "\\U{code:08x}"),
                };
            }
            c => quoted.push(c),
        }
    }
    quoted
}

/// Returns `true` if a text of several lines can be a block scalar without an indentation indicator.
fn is_block(content: &str) -> bool {
    content.trim_end_matches('\n').contains('\n')
        && !content.starts_with([' ', '\n', '\t'])
        && !content.ends_with("\n\n")
        && !content.contains("\n ")
        && content
            .chars()
            .all(|c| c == '\n' || (!c.is_control() && !tool_scan::is_hidden(c)))
}

/// Returns `true` if a text without quotes is read as a text, by YAML 1.1 as well.
fn is_plain(content: &str) -> bool {
    const WORDS: [&str; 10] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "~"];
    let first_fits = content
        .chars()
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_' || c == '/');
    let all_fit = content
        .chars()
        .all(|c| c.is_alphanumeric() && !tool_scan::is_hidden(c) || " _-./(),+@`'=".contains(c) || c == ':');
    first_fits
        && all_fit
        && !content.ends_with([' ', ':'])
        && !content.contains(": ")
        && !WORDS.iter().any(|word| content.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_every_kind() {
        let value = RawJson::parse(
            r##"{"name":"echo","no":"no","n":123456789012345678901234567890,"s":"1.0","e":{},"l":[],
                "list":["a",{"b":1,"c":[true,null]},[1,[2]]],"text":"two\nlines\n","odd":" x","u":"https://a.b/c","h":"a # b","colon":"a: b"}"##
                .to_owned(),
        )
        .unwrap();
        let expected = r#"name: echo
"no": "no"
"n": 123456789012345678901234567890
s: "1.0"
e: {}
l: []
list:
  - a
  - b: 1
    c:
      - true
      - null
  -
    - 1
    -
      - 2
text: |
  two
  lines
odd: " x"
u: https://a.b/c
h: "a # b"
colon: "a: b"
"#;
        assert_eq!(yaml(&value), expected);
    }

    #[test]
    fn characters_that_yaml_would_take_for_something_else() {
        let value = RawJson::parse(
            r#"["\ud83d\ude00", "a\u2028b", "\ufeff", "\u0085", "\u007f", "\ud83d"]"#.to_owned(),
        );
        let expected =
            "- \"\u{1f600}\"\n- \"a\\u2028b\"\n- \"\\ufeff\"\n- \"\\u0085\"\n- \"\\u007f\"\n- \"\\ud83d\"\n";
        assert_eq!(yaml(&value.unwrap()), expected);
    }

    #[test]
    fn a_value_alone() {
        for (json, expected) in [
            ("1", "1\n"),
            (r#""a""#, "a\n"),
            ("[]", "[]\n"),
            ("[1]", "- 1\n"),
            (r#""a\nb""#, "|-\n  a\n  b\n"),
        ] {
            assert_eq!(yaml(&RawJson::parse(json.to_owned()).unwrap()), expected);
        }
    }
}
