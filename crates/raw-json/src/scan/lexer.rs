//! Lexer: functions that take the offset of a token and return the offset after it, or an error.
//!
//! They do not borrow the scanner, so that its cursor can stay in a register.

use super::special_bytes::{SpecialBytes, end_of_plain};
use crate::JsonError;

/// Skips white space.
#[inline(always)]
pub(crate) fn skip_space(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at) {
        Some(byte) if *byte <= b' ' => skip_spaces(bytes, at),
        _ => at,
    }
}

/// Skips white space. Out of line, for text in which white space is likely.
#[inline(never)]
pub(crate) fn skip_spaces(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

/// Returns the offset after the string at `start`, and `true` if it contains escapes.
#[inline(always)]
pub(crate) fn string_end(bytes: &[u8], start: usize) -> Result<(usize, bool), JsonError> {
    let at = end_of_plain(bytes, start + 1);
    if bytes.get(at) == Some(&b'"') {
        return Ok((at + 1, false));
    }
    escaped_string_end(bytes, at).map(|end| (end, true))
}

/// Returns the offset after a string that contains more than plain text.
#[inline(never)]
fn escaped_string_end(bytes: &[u8], mut at: usize) -> Result<usize, JsonError> {
    let mut special_bytes = SpecialBytes::new(bytes);
    loop {
        match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at = special_bytes.next_from(escape_end(bytes, at)?),
            Some(_) => return Err(JsonError::syntax("control character in a string", at)),
            None => return Err(JsonError::syntax("unterminated string", at)),
        }
    }
}

fn escape_end(bytes: &[u8], at: usize) -> Result<usize, JsonError> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => {
            let digits = bytes.get(at + 2..at + 6).unwrap_or_default();
            if digits.len() < 4 || !digits.iter().all(u8::is_ascii_hexdigit) {
                return Err(JsonError::syntax("invalid \\u escape", at));
            }
            Ok(at + 6)
        }
        _ => Err(JsonError::syntax("invalid escape", at)),
    }
}

/// Returns the offset after the number or literal at `at`.
#[inline(never)]
pub(crate) fn scalar_end(bytes: &[u8], at: usize) -> Result<usize, JsonError> {
    match bytes.get(at) {
        Some(b'-' | b'0'..=b'9') => number_end(bytes, at),
        Some(b't') => word_end(bytes, at, "true"),
        Some(b'f') => word_end(bytes, at, "false"),
        Some(b'n') => word_end(bytes, at, "null"),
        None => Err(JsonError::syntax("unexpected end of text, expected a value", at)),
        Some(_) => Err(JsonError::syntax("expected a value", at)),
    }
}

fn word_end(bytes: &[u8], at: usize, word: &'static str) -> Result<usize, JsonError> {
    if bytes[at..].starts_with(word.as_bytes()) {
        Ok(at + word.len())
    } else {
        Err(JsonError::syntax("expected a value", at))
    }
}

fn number_end(bytes: &[u8], mut at: usize) -> Result<usize, JsonError> {
    if bytes.get(at) == Some(&b'-') {
        at += 1;
    }
    let is_zero = bytes.get(at) == Some(&b'0');
    let whole = digits_end(bytes, at)?;
    if is_zero && whole > at + 1 {
        return Err(JsonError::syntax("number with a leading zero", at + 1));
    }
    at = whole;
    if bytes.get(at) == Some(&b'.') {
        at = digits_end(bytes, at + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        if matches!(bytes.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        at = digits_end(bytes, at)?;
    }
    Ok(at)
}

fn digits_end(bytes: &[u8], start: usize) -> Result<usize, JsonError> {
    let mut at = start;
    while matches!(bytes.get(at), Some(b'0'..=b'9')) {
        at += 1;
    }
    if at == start {
        return Err(JsonError::syntax("expected a digit", at));
    }
    Ok(at)
}
