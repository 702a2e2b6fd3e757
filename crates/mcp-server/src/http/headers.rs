//! What the headers of a request ask for, and whether they say the same as the body.

use std::borrow::Cow;

use http::{
    HeaderMap, HeaderValue,
    header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE},
};
use mcp_wire::{RpcError, code, header, method};
use raw_json::RawJson;

use crate::outline::Outline;

/// The forms of an answer that a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Accepts {
    /// Clients should name both forms. One that names none takes any; real clients leave the header out.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut accepts = Self {
            json: false,
            events: false,
        };
        let mut is_named = false;
        for value in headers.get_all(ACCEPT) {
            for range in value.as_bytes().split(|byte| *byte == b',') {
                let mut parts = range.split(|byte| *byte == b';');
                let media_type = parts.next().unwrap_or_default().trim_ascii();
                is_named |= !media_type.is_empty();
                if parts.any(is_zero_weight) {
                    continue;
                }
                let is = |wanted: &str| media_type.eq_ignore_ascii_case(wanted.as_bytes());
                accepts.json |= is("application/json") || is("application/*") || is("*/*");
                accepts.events |= is("text/event-stream") || is("text/*") || is("*/*");
            }
        }
        if is_named {
            return accepts;
        }
        Self {
            json: true,
            events: true,
        }
    }
}

fn is_zero_weight(parameter: &[u8]) -> bool {
    let parameter = parameter.trim_ascii();
    let Some(weight) = parameter
        .strip_prefix(b"q=")
        .or_else(|| parameter.strip_prefix(b"Q="))
    else {
        return false;
    };
    weight.iter().all(|byte| matches!(byte, b'0' | b'.'))
}

/// Whether the body is JSON as it is: web pages cannot send this type without being asked first.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers
        .get(CONTENT_TYPE)
        .map(HeaderValue::as_bytes)
        .unwrap_or_default();
    let media_type = media_type.split(|byte| *byte == b';').next().unwrap_or_default();
    media_type.trim_ascii().eq_ignore_ascii_case(b"application/json")
        && headers
            .get(CONTENT_ENCODING)
            .is_none_or(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// The one value of a header; an error when it stands there twice or is no text.
pub(super) fn single<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    match (value.to_str(), values.next()) {
        (Ok(text), None) => Ok(Some(text)),
        (_, Some(_)) => Err(mismatch(format!("the header `{name}` stands there twice"))),
        (Err(_), None) => Err(mismatch(format!("the header `{name}` has invalid characters"))),
    }
}

/// Checks that the headers of a modern request say what its body says, since policy in front may have read them, and
/// gives the name that they agree on.
pub(super) fn check_mirrored(
    headers: &HeaderMap,
    version: &str,
    method: &str,
    outline: &Outline,
) -> Result<Option<String>, RpcError> {
    expect(headers, header::PROTOCOL_VERSION, version)?;
    expect(headers, header::METHOD, method)?;
    let name = match method {
        method::TOOLS_CALL | method::PROMPTS_GET => &outline.name,
        method::RESOURCES_READ => &outline.uri,
        method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL => &outline.task_id,
        _ => return Ok(None),
    };
    // What the body lacks is for the service to say.
    let name = name.as_ref().and_then(RawJson::string);
    if let Some(name) = &name {
        expect(headers, header::NAME, name)?;
    }
    Ok(name)
}

fn expect(headers: &HeaderMap, name: &'static str, body: &str) -> Result<(), RpcError> {
    let value = single(headers, name)?;
    let Some(value) = value else {
        return Err(mismatch(format!("the header `{name}` is missing")));
    };
    let value = match name {
        header::NAME => {
            decode(value).ok_or_else(|| mismatch(format!("the header `{name}` is not valid base64")))?
        }
        _ => Cow::Borrowed(value),
    };
    if value != body {
        let short: String = value.chars().take(64).collect();
        return Err(mismatch(format!(
            "the header `{name}` says `{short}`, the body does not"
        )));
    }
    Ok(())
}

pub(super) fn mismatch(message: String) -> RpcError {
    RpcError::new(code::HEADER_MISMATCH, message)
}

/// The value of a header that may be written as `=?base64?…?=`.
pub(super) fn decode(value: &str) -> Option<Cow<'_, str>> {
    let encoded = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    let Some(encoded) = encoded else {
        return Some(Cow::Borrowed(value));
    };
    String::from_utf8(base64(encoded)?).ok().map(Cow::Owned)
}

/// Decodes base64 with padding (RFC 4648, section 4), strictly.
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
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_the_sentinel_form_and_nothing_else() {
        for (value, expected) in [
            ("us-west1", Some("us-west1")),
            ("=?base64?SGVsbG8sIOS4lueVjA==?=", Some("Hello, 世界")),
            ("=?base64?IHBhZGRlZCA=?=", Some(" padded ")),
            ("=?base64?bGluZTEKbGluZTI=?=", Some("line1\nline2")),
            ("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", Some("=?base64?literal?=")),
            ("=?base64??=", Some("")),
            ("=?base64?SGVsbG8", Some("=?base64?SGVsbG8")),
            ("=?base64?SGVsbG8?=", None),
            ("=?base64?SG VsbG8=?=", None),
            ("=?base64?====?=", None),
            ("=?base64?QR==?=", None),
            ("=?base64?/w==?=", None),
        ] {
            assert_eq!(decode(value).as_deref(), expected, "{value}");
        }
    }
}
