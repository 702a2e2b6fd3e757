//! Search in the head of a message that was cut off.

use raw_json::RawJson;

use super::id::integer_id;

/// Finds the id in the head of a message that was cut off, or that is not JSON further on.
///
/// Only a complete member of the outermost object counts.
#[must_use]
pub fn id_in_head(head: &[u8]) -> Option<u64> {
    scalar(member_in_head(head, b"\"id\"")?)
}

/// Returns `true` if the head has a method, and so belongs to a request or a notification rather than to a response.
#[must_use]
pub fn has_method_in_head(head: &[u8]) -> bool {
    member_in_head(head, b"\"method\"").is_some()
}

/// Returns the text from the value of this member of the outermost object on.
fn member_in_head<'a>(head: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < head.len() {
        match head[at] {
            b'"' => {
                let end = string_end(head, at)?;
                let after = skip_space(head, end);
                if depth == 1 && &head[at..end] == key && head.get(after) == Some(&b':') {
                    return Some(&head[skip_space(head, after + 1)..]);
                }
                at = end;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the index just past the string that begins at `start`.
fn string_end(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn skip_space(text: &[u8], start: usize) -> usize {
    let space = text[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count();
    start + space
}

/// Reads the integer at the start of a text. Returns `None` if its end was cut off.
fn scalar(text: &[u8]) -> Option<u64> {
    let end = text
        .iter()
        .position(|byte| matches!(byte, b',' | b'}') || byte.is_ascii_whitespace())?;
    let value = RawJson::parse(text[..end].to_vec()).ok()?;
    integer_id(&value)
}
