use std::{borrow::Cow, fmt::Write};

use crate::{hidden::class_of, hidden_chars, markup};

/// Escapes each hidden character and line break, such as `\u{202e}` and `\n`, so that the result is one line.
///
/// # Examples
/// ```
/// assert_eq!(tool_scan::escape_line("a\r\nb\u{202e}"), r"a\nb\u{202e}");
/// ```
#[must_use]
pub fn escape_line(text: &str) -> Cow<'_, str> {
    escape(text, |c, escaped| match c {
        '\n' => escaped.push_str("\\n"),
        '\t' => escaped.push_str("\\t"),
        // Part of a CRLF, since a lone carriage return is a hidden character.
        '\r' => {}
        c => escaped.push(c),
    })
}

/// Escapes each hidden character, such as `\u{202e}`, in a text of several lines. Line feeds and tabs stay; CRLF becomes a
/// line feed.
#[must_use]
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    escape(text, |c, escaped| {
        if c != '\r' {
            escaped.push(c);
        }
    })
}

/// Escapes hidden characters, and passes the others to `put`.
fn escape(text: &str, put: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.into();
    }
    let mut hidden = hidden_chars(text).peekable();
    let mut escaped = String::with_capacity(text.len() + 8);
    for (at, c) in text.char_indices() {
        if hidden.next_if(|hidden| hidden.at == at).is_some() {
            put_code(c, &mut escaped);
        } else {
            put(c, &mut escaped);
        }
    }
    if escaped == text {
        text.into()
    } else {
        escaped.into()
    }
}

fn put_code(c: char, escaped: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(escaped, "\\u{{{:x}}}", u32::from(c));
}

/// Returns equivalent JSON text without raw hidden characters. Each is escaped as `\u202e`, even if its neighbours need it.
/// White space between tokens stays.
#[must_use]
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| !matches!(c, '\n' | '\r' | '\t') && class_of(c).is_some();
    if !json.chars().any(is_hidden) {
        return json.into();
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped.into()
}

/// Escapes a foreign message for a model: one line, with hidden characters as `\u{202e}`, line breaks and tabs as spaces,
/// and `<` as `&lt;` where it begins a comment, or markup that acts or hides.
#[must_use]
pub fn escape_for_model(text: &str) -> Cow<'_, str> {
    let line = escape(text, |c, line| {
        if matches!(c, '\n' | '\t' | '\r') {
            if !line.ends_with(' ') {
                line.push(' ');
            }
        } else {
            line.push(c);
        }
    });
    match line {
        Cow::Borrowed(line) => markup::defuse(line),
        Cow::Owned(line) => markup::defuse(&line).into_owned().into(),
    }
}
