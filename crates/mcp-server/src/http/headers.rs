//! What the headers of a request ask for, and whether they say the same as the body.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue, header::ACCEPT};
use mcp_wire::{MirroredParams, RpcError, code, header, meta_key, method};
use raw_json::RawJson;

use crate::outline::Outline;

/// The headers that the transport goes by, found in one pass: to look up three of them takes as long.
#[derive(Debug, Default)]
pub(super) struct Known<'a> {
    pub(super) host: Found<'a>,
    pub(super) origin: Found<'a>,
    pub(super) accept: Found<'a>,
    pub(super) content_type: Found<'a>,
    pub(super) content_encoding: Found<'a>,
    pub(super) session: Found<'a>,
    pub(super) version: Found<'a>,
    pub(super) method: Found<'a>,
    pub(super) name: Found<'a>,
    pub(super) trace: Found<'a>,
}

/// What was found of one header.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Found<'a> {
    pub(super) first: Option<&'a HeaderValue>,
    pub(super) is_repeated: bool,
}

impl<'a> Known<'a> {
    pub(super) fn of(headers: &'a HeaderMap) -> Self {
        let mut known = Self::default();
        for (name, value) in headers {
            let found = match name.as_str() {
                "host" => &mut known.host,
                "origin" => &mut known.origin,
                "accept" => &mut known.accept,
                "content-type" => &mut known.content_type,
                "content-encoding" => &mut known.content_encoding,
                header::SESSION_ID => &mut known.session,
                header::PROTOCOL_VERSION => &mut known.version,
                header::METHOD => &mut known.method,
                header::NAME => &mut known.name,
                meta_key::TRACE_PARENT => &mut known.trace,
                _ => continue,
            };
            found.is_repeated = found.first.is_some();
            found.first = found.first.or(Some(value));
        }
        known
    }
}

/// The forms of an answer that a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
}

/// What the head of a request says of its form.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub(super) accepts: Accepts,
    pub(super) is_json: bool,
    pub(super) is_traced: bool,
}

impl Form {
    pub(super) fn of(known: &Known<'_>, headers: &HeaderMap) -> Self {
        Self {
            accepts: Accepts::of(known, headers),
            is_json: is_json(known),
            is_traced: known.trace.first.is_some(),
        }
    }
}

impl Accepts {
    /// Clients should name both forms. One that names none takes any; real clients leave the header out.
    fn of(known: &Known<'_>, headers: &HeaderMap) -> Self {
        // What the protocol asks for, as most clients write it.
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

/// Whether the body is JSON as it is: web pages cannot send this type without being asked first.
fn is_json(known: &Known<'_>) -> bool {
    let media_type = known.content_type.first.map(HeaderValue::as_bytes);
    let media_type = media_type.unwrap_or_default();
    let media_type = media_type.split(|byte| *byte == b';').next().unwrap_or_default();
    // Of two of them, somebody else may go by the other one.
    let is_repeated = known.content_type.is_repeated || known.content_encoding.is_repeated;
    media_type.trim_ascii().eq_ignore_ascii_case(b"application/json")
        && !is_repeated
        && known
            .content_encoding
            .first
            .is_none_or(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

impl<'a> Found<'a> {
    /// The one value of the header; an error when it stands there twice or is no text.
    pub(super) fn single(self, name: &str) -> Result<Option<&'a str>, RpcError> {
        let Some(value) = self.first else {
            return Ok(None);
        };
        if self.is_repeated {
            return Err(mismatch(format!("the header `{name}` stands there twice")));
        }
        let text = value.to_str();
        let text = text.map_err(|_| mismatch(format!("the header `{name}` has invalid characters")))?;
        Ok(Some(text))
    }
}

/// Checks that the headers of a modern request say what its body says, since policy in front may have read them, and
/// gives the name that they agree on.
pub(super) fn check_mirrored<'a>(
    known: &Known<'_>,
    version: &str,
    method: &str,
    outline: &'a Outline,
) -> Result<Option<Cow<'a, str>>, RpcError> {
    expect(known.version, header::PROTOCOL_VERSION, version)?;
    expect(known.method, header::METHOD, method)?;
    let name = match method {
        method::TOOLS_CALL | method::PROMPTS_GET => &outline.name,
        method::RESOURCES_READ => &outline.rare().uri,
        method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL => &outline.rare().task_id,
        _ => return Ok(None),
    };
    // What the body lacks is for the service to say.
    let name = name.as_ref().and_then(RawJson::text);
    if let Some(name) = &name {
        expect(known.name, header::NAME, name)?;
    }
    Ok(name)
}

fn expect(found: Found<'_>, name: &str, body: &str) -> Result<(), RpcError> {
    let Some(value) = found.single(name)? else {
        return Err(mismatch(format!("the header `{name}` is missing")));
    };
    let value = if name == header::NAME {
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

/// Refuses headers that mirror arguments of a tool of which nobody knows which arguments those are.
pub(super) fn refuse_params(headers: &HeaderMap, tool: &str) -> Result<(), RpcError> {
    let mirrors = |name: &&HeaderName| name.as_str().starts_with(header::PARAM_PREFIX);
    let Some(name) = headers.keys().find(mirrors) else {
        return Ok(());
    };
    let tool: String = tool.chars().take(64).collect();
    Err(mismatch(format!(
        "the header `{name}` cannot be checked: the tool `{tool}` is not known now"
    )))
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
