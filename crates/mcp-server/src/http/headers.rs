//! What the headers of a request ask for, and whether they say the same as the body.

use std::borrow::Cow;

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE},
};
use mcp_wire::{MirroredParams, RpcError, code, header, method};
use raw_json::RawJson;

use crate::outline::Outline;

// Made when this is compiled: looking a header up by its text checks and hashes the text each time.
pub(super) static SESSION_ID: HeaderName = HeaderName::from_static(header::SESSION_ID);
pub(super) static PROTOCOL_VERSION: HeaderName = HeaderName::from_static(header::PROTOCOL_VERSION);
static METHOD: HeaderName = HeaderName::from_static(header::METHOD);
static NAME: HeaderName = HeaderName::from_static(header::NAME);

/// The forms of an answer that a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Accepts {
    /// Clients should name both forms. One that names none takes any; real clients leave the header out.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        // What the protocol asks for, as most clients write it.
        const BOTH: &[u8] = b"application/json, text/event-stream";
        let mut values = headers.get_all(ACCEPT).iter();
        if values.next().is_some_and(|value| value == BOTH) && values.next().is_none() {
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
pub(super) fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, RpcError> {
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
    expect(headers, &PROTOCOL_VERSION, version)?;
    expect(headers, &METHOD, method)?;
    let name = match method {
        method::TOOLS_CALL | method::PROMPTS_GET => &outline.name,
        method::RESOURCES_READ => &outline.rare().uri,
        method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL => &outline.rare().task_id,
        _ => return Ok(None),
    };
    // What the body lacks is for the service to say.
    let name = name.as_ref().and_then(RawJson::string);
    if let Some(name) = &name {
        expect(headers, &NAME, name)?;
    }
    Ok(name)
}

fn expect(headers: &HeaderMap, name: &HeaderName, body: &str) -> Result<(), RpcError> {
    let value = single(headers, name)?;
    let Some(value) = value else {
        return Err(mismatch(format!("the header `{name}` is missing")));
    };
    let value = if *name == NAME {
        let decoded = header::decode(value);
        decoded.ok_or_else(|| mismatch(format!("the header `{name}` is not valid base64")))?
    } else {
        Cow::Borrowed(value)
    };
    if value != body {
        let short: String = value.chars().take(64).collect();
        return Err(mismatch(format!(
            "the header `{name}` says `{short}`, the body does not"
        )));
    }
    Ok(())
}

fn mismatch(message: String) -> RpcError {
    RpcError::new(code::HEADER_MISMATCH, message)
}

/// Checks that the headers say what the arguments of a tool say, and say it of those that are there.
pub(super) fn check_params(
    mirrored: &MirroredParams,
    headers: &HeaderMap,
    arguments: Option<&RawJson>,
) -> Result<(), RpcError> {
    for param in mirrored.params() {
        let header = param.header();
        let mut values = headers.get_all(header).iter();
        let said = values.next();
        if values.next().is_some() {
            return Err(mismatch(format!("the header `{header}` stands there twice")));
        }
        let said = match said {
            None => None,
            Some(said) => {
                let text = said.to_str().ok().and_then(header::decode);
                let invalid = || mismatch(format!("the header `{header}` has invalid characters or base64"));
                Some(text.ok_or_else(invalid)?)
            }
        };
        if param.value(arguments).as_deref() != said.as_deref() {
            let message = format!(
                "the header `{header}` does not say what the argument `{}` says",
                param.path().join(".")
            );
            return Err(mismatch(message));
        }
    }
    Ok(())
}
