//! Names of the HTTP headers of the Streamable HTTP transport, in lower case as HTTP libraries want them, and
//! how texts stand in their values.

use std::borrow::Cow;

/// The session of a legacy connection, minted by the server.
pub const SESSION_ID: &str = "mcp-session-id";
/// The revision that a request is written in.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The method of the request in the body (2026-07-28).
pub const METHOD: &str = "mcp-method";
/// The tool, prompt or resource that the request in the body is about (2026-07-28).
pub const NAME: &str = "mcp-name";
/// What the headers that mirror a tool's arguments start with (2026-07-28).
pub const PARAM_PREFIX: &str = "mcp-param-";
/// The last event that a client saw of a stream that it resumes (legacy).
pub const LAST_EVENT_ID: &str = "last-event-id";

/// What stands before a value in base64, and after it.
const ENCODED: (&str, &str) = ("=?base64?", "?=");
/// The digits of base64 (RFC 4648, section 4).
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A text as the value of a header of the modern era: itself where that is safe, else in base64 between marks, as
/// `=?base64?…?=`. It is printable ASCII.
#[must_use]
pub fn encode(text: &str) -> Cow<'_, str> {
    let (start, end) = ENCODED;
    let is_plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && text.trim_ascii() == text
        && !(text.starts_with(start) && text.ends_with(end));
    if is_plain {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(start.len() + text.len().div_ceil(3) * 4 + end.len());
    out.push_str(start);
    for chunk in text.as_bytes().chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            out.push(match digit <= chunk.len() {
                true => char::from(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize]),
                false => '=',
            });
        }
    }
    out.push_str(end);
    Cow::Owned(out)
}

/// The text that a header of the modern era says, whether it is encoded or not; nothing when the encoding is not valid.
#[must_use]
pub fn decode(value: &str) -> Option<Cow<'_, str>> {
    let encoded = value
        .strip_prefix(ENCODED.0)
        .and_then(|rest| rest.strip_suffix(ENCODED.1));
    let Some(encoded) = encoded else {
        return Some(Cow::Borrowed(value));
    };
    String::from_utf8(base64(encoded)?).ok().map(Cow::Owned)
}

/// Decodes base64 with padding, strictly.
fn base64(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    if padding > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.bytes().take(text.len() - padding) {
        let value = DIGITS.iter().position(|digit| *digit == byte)?;
        bits = bits << 6 | u32::try_from(value).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    // Bits that are left over must be zero, or two texts would stand for one value.
    (bits == 0).then_some(out)
}
