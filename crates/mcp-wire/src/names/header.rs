//! Names of the HTTP headers of the Streamable HTTP transport, in the lower case that HTTP libraries expect, and the
//! encoding of their values.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};

/// Session of a legacy connection, whose id the server chooses.
pub const SESSION_ID: &str = "mcp-session-id";
/// Revision of a request.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// Method of the request in the body (2026-07-28).
pub const METHOD: &str = "mcp-method";
/// Tool, prompt or resource of the request in the body (2026-07-28).
pub const NAME: &str = "mcp-name";
/// Prefix of the headers that mirror a tool's arguments (2026-07-28).
pub const PARAM_PREFIX: &str = "mcp-param-";
/// Last event that a client received of a stream that it resumes (legacy).
pub const LAST_EVENT_ID: &str = "last-event-id";

/// Marks before and after a value in base64.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// Encodes a text as the value of a header of the modern era: unchanged where that is safe, otherwise in base64 between
/// marks, as `=?base64?…?=`. The result is printable ASCII.
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
    STANDARD.encode_string(text, &mut out);
    out.push_str(end);
    Cow::Owned(out)
}

/// Decodes the value of a header of the modern era, in base64 or not. Returns `None` if the encoding is invalid.
#[must_use]
pub fn decode(value: &str) -> Option<Cow<'_, str>> {
    let encoded = value
        .strip_prefix(ENCODED.0)
        .and_then(|rest| rest.strip_suffix(ENCODED.1));
    let Some(encoded) = encoded else {
        return Some(Cow::Borrowed(value));
    };
    let bytes = STANDARD.decode(encoded).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}
