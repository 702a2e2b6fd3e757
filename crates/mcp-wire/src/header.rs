//! Names of the HTTP headers of the Streamable HTTP transport, in lower case as HTTP libraries want them, and
//! how texts stand in their values.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};

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
    STANDARD.encode_string(text, &mut out);
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
    let bytes = STANDARD.decode(encoded).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}
