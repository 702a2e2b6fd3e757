use std::ops::Range;

use memchr::memchr2;

use crate::HIDDEN;

/// Returns a JSON text with [`HIDDEN`] in these ranges, which are in order and do not overlap. The text stays JSON:
/// within a string no escape is cut, a number or another word becomes a string, and structural characters stay.
pub(super) fn replace_in_json(text: &str, ranges: &[Range<usize>]) -> String {
    let bytes = text.as_bytes();
    let mut hidden = String::with_capacity(text.len());
    // Length of the text written so far.
    let mut end = 0;
    let mut ranges = ranges.iter().peekable();
    let mut at = 0;
    while at < bytes.len() && ranges.peek().is_some() {
        let token = match bytes[at] {
            b'"' => at + 1..string_end(bytes, at + 1),
            b'-' | b'0'..=b'9' | b'a'..=b'z' => at..word_end(bytes, at),
            _ => {
                at += 1;
                continue;
            }
        };
        let is_string = bytes[at] == b'"';
        at = token.end + usize::from(is_string);
        while let Some(&range) = ranges.peek().filter(|range| range.start < token.end) {
            let part = match is_string {
                true => within_string(text, &token, range),
                false if range.end > token.start => token.clone(),
                false => token.end..token.end,
            };
            if part.start >= end && part.start < part.end {
                let quote = if is_string { "" } else { "\"" };
                hidden.extend([&text[end..part.start], quote, HIDDEN, quote]);
                end = part.end;
            }
            if range.end > token.end {
                break;
            }
            ranges.next();
        }
    }
    hidden.push_str(&text[end..]);
    hidden
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(next) = memchr2(b'"', b'\\', &bytes[at..]) {
        at += next;
        if bytes[at] == b'"' {
            return at;
        }
        at = bytes.len().min(at + 2);
    }
    bytes.len()
}

fn word_end(bytes: &[u8], start: usize) -> usize {
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let length = bytes[start..].iter().take_while(|byte| is_of_word(byte)).count();
    start + length
}

/// Returns the part of a range within a string, widened to whole characters and escapes.
fn within_string(text: &str, string: &Range<usize>, range: &Range<usize>) -> Range<usize> {
    let start = range.start.max(string.start);
    let end = range.end.min(string.end);
    if start >= end {
        return end..end;
    }
    let bytes = text.as_bytes();
    let mut part = end..start;
    let mut at = string.start;
    // Nothing before a quote or a backslash is an escape.
    while at < end {
        let next = match bytes[at] {
            b'\\' if bytes.get(at + 1) == Some(&b'u') => at + 6,
            b'\\' => at + 2,
            _ => at + 1,
        };
        if next > start {
            part.start = part.start.min(at);
            part.end = part.end.max(next);
        }
        at = next;
    }
    let first = text.floor_char_boundary(part.start);
    first..text.ceil_char_boundary(part.end.min(string.end))
}
