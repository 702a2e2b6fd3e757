//! Finds the end of a value in already validated JSON.

use super::special_bytes::end_of_plain;
use crate::value_index::ValueIndex;

/// Returns the offset after the value that starts at `at`. Does not scan the value if its end is indexed.
#[inline]
pub(crate) fn value_end(text: &str, at: usize, value_index: Option<&ValueIndex>) -> usize {
    if let Some(end) = value_index.and_then(|value_index| value_index.end_of(text, at)) {
        return end;
    }
    let bytes = text.as_bytes();
    match bytes.get(at) {
        Some(b'"') => string_end(bytes, at).0,
        Some(b'{' | b'[') => container_end(bytes, at),
        _ => scalar_end(bytes, at),
    }
}

/// Returns the offset after the string at `start`, and `true` if it contains escapes.
#[inline(always)]
pub(crate) fn string_end(bytes: &[u8], start: usize) -> (usize, bool) {
    let at = end_of_plain(bytes, start + 1);
    if bytes.get(at) == Some(&b'\\') {
        (escaped_string_end(bytes, at), true)
    } else {
        (at + 1, false)
    }
}

/// Returns the offset after a string that contains a backslash.
#[inline(never)]
fn escaped_string_end(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at) == Some(&b'\\') {
        at = end_of_plain(bytes, at + 2);
    }
    at + 1
}

fn container_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at).0;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}

fn scalar_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        if matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t') {
            break;
        }
        at += 1;
    }
    at
}
