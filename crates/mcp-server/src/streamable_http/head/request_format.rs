use http::{HeaderMap, HeaderValue, header::ACCEPT};

use super::known_headers::KnownHeaders;

/// Media types of responses that a client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accepts {
    pub(crate) json: bool,
    pub(crate) events: bool,
}

/// Format of a request and of its response, as the head declares them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestFormat {
    pub(crate) accepts: Accepts,
    /// `true` if the body is JSON without a content coding.
    pub(crate) is_json: bool,
    /// `true` if the headers name a trace.
    pub(crate) is_traced: bool,
}

impl RequestFormat {
    pub(crate) fn from_headers(known: &KnownHeaders<'_>, headers: &HeaderMap) -> Self {
        Self {
            accepts: Accepts::from_headers(known, headers),
            is_json: is_json(known),
            is_traced: known.trace.first.is_some(),
        }
    }
}

impl Accepts {
    /// Reads `Accept`. Clients should name both media types. One that names none accepts any: real clients leave the header
    /// out.
    fn from_headers(known: &KnownHeaders<'_>, headers: &HeaderMap) -> Self {
        // The value that the protocol requires, as most clients write it.
        const BOTH: &[u8] = b"application/json, text/event-stream";
        if known.accept.first.is_some_and(|value| value == BOTH) && !known.accept.is_repeated {
            return Self {
                json: true,
                events: true,
            };
        }
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

/// Returns `true` if the body is JSON without a content coding. Web pages cannot send this type without a preflight.
fn is_json(known: &KnownHeaders<'_>) -> bool {
    let media_type = known.content_type.first.map(HeaderValue::as_bytes);
    let media_type = media_type.unwrap_or_default();
    let media_type = media_type.split(|byte| *byte == b';').next().unwrap_or_default();
    // Of two headers, another reader may use the other one.
    let is_repeated = known.content_type.is_repeated || known.content_encoding.is_repeated;
    media_type.trim_ascii().eq_ignore_ascii_case(b"application/json")
        && !is_repeated
        && known
            .content_encoding
            .first
            .is_none_or(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
}
