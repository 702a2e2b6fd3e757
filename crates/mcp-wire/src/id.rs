use std::fmt;

use raw_json::{JsonKind, RawJson};

/// The id of a request as the caller wrote it: an integer, or a string of at most 1 KiB.
///
/// Two ids are equal when their texts are, so an answer carries the very bytes that the caller sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Id(RawJson);

/// The longest string that is accepted as an id, quotes included.
const MAX_STRING: usize = 1026;
/// The longest integer that is accepted as an id: what a 64-bit integer needs.
const MAX_INTEGER: usize = 20;

impl Id {
    /// Takes a value that may be an id; nothing when it is null, a fraction, a container, or too long.
    #[must_use]
    pub fn new(value: &RawJson) -> Option<Self> {
        let text = value.as_str();
        let fits = match value.kind() {
            JsonKind::String => text.len() <= MAX_STRING,
            JsonKind::Number => {
                let digits = text.strip_prefix('-').unwrap_or(text);
                text.len() <= MAX_INTEGER && digits.bytes().all(|byte| byte.is_ascii_digit())
            }
            JsonKind::Null | JsonKind::Bool | JsonKind::Array | JsonKind::Object => false,
        };
        fits.then(|| Self(value.clone()))
    }

    /// The id as JSON text.
    #[must_use]
    pub fn as_raw(&self) -> &RawJson {
        &self.0
    }
}

impl From<u64> for Id {
    fn from(value: u64) -> Self {
        Self(RawJson::from(value))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Reads an integer that a peer may have echoed in another form: `7`, `"7"`, `7.0`, `"7.0"` and `7e0` are all 7.
#[must_use]
pub fn integer(value: &RawJson) -> Option<u64> {
    let text = match value.kind() {
        JsonKind::Number => value.as_str(),
        JsonKind::String => value.as_str().trim_matches('"'),
        JsonKind::Null | JsonKind::Bool | JsonKind::Array | JsonKind::Object => return None,
    };
    if let Ok(integer) = text.parse() {
        return Some(integer);
    }
    // Integers up to 2^53 are exact as doubles; ids of ours never reach it.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let double: f64 = text.parse().ok()?;
    ((0.0..=EXACT).contains(&double) && double.fract() == 0.0).then_some(double as u64)
}

/// Finds the id in the head of a message that was cut off, or that is no JSON further on.
///
/// Only a member of the outermost object counts, and only one that stands within `head`.
#[must_use]
pub fn id_in_head(head: &[u8]) -> Option<u64> {
    scalar(member_in_head(head, b"\"id\"")?)
}

/// Whether such a head is that of a request or a notification, and so of no answer: it has a method.
#[must_use]
pub fn method_in_head(head: &[u8]) -> bool {
    member_in_head(head, b"\"method\"").is_some()
}

/// What stands behind this member of the outermost object.
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

/// Where the string that begins at `start` has ended.
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

/// The integer at the start of a text, if what ends it is there too.
fn scalar(text: &[u8]) -> Option<u64> {
    let end = text
        .iter()
        .position(|byte| matches!(byte, b',' | b'}') || byte.is_ascii_whitespace())?;
    let value = RawJson::parse(text[..end].to_vec()).ok()?;
    integer(&value)
}
