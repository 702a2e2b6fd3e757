//! Headers of the modern era that repeat parts of the body.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName};
use mcp_wire::{MirroredParams, RpcError, header, method};
use raw_json::RawJson;

use super::known_headers::{FoundHeader, KnownHeaders, mismatch};
use crate::request::ParsedParams;

/// Checks that the headers of a modern request agree with its body, since a proxy in front may have decided by them. Returns
/// the name that they agree on.
pub(crate) fn check_mirrored<'a>(
    known: &KnownHeaders<'_>,
    version: &str,
    method: &str,
    params: &'a ParsedParams,
) -> Result<Option<Cow<'a, str>>, RpcError> {
    expect(known.version, header::PROTOCOL_VERSION, version)?;
    expect(known.method, header::METHOD, method)?;
    let name = match method {
        method::TOOLS_CALL | method::PROMPTS_GET => &params.name,
        method::RESOURCES_READ => &params.rare().uri,
        method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL => &params.rare().task_id,
        _ => return Ok(None),
    };
    // The service answers a body without a name.
    let name = name.as_ref().and_then(RawJson::text);
    if let Some(name) = &name {
        expect(known.name, header::NAME, name)?;
    }
    Ok(name)
}

fn expect(found: FoundHeader<'_>, name: &str, body: &str) -> Result<(), RpcError> {
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
            "the header `{name}` is `{short}`, unlike the body"
        )));
    }
    Ok(())
}

/// Refuses headers that mirror arguments of a tool whose mirrored arguments are unknown.
pub(crate) fn refuse_params(headers: &HeaderMap, tool: &str) -> Result<(), RpcError> {
    let mirrors = |name: &&HeaderName| name.as_str().starts_with(header::PARAM_PREFIX);
    let Some(name) = headers.keys().find(mirrors) else {
        return Ok(());
    };
    let tool: String = tool.chars().take(64).collect();
    Err(mismatch(format!(
        "the header `{name}` cannot be checked: the tool `{tool}` is not known now"
    )))
}

/// Checks that the headers repeat the arguments of a tool that are present, and no others.
pub(crate) fn check_params(
    mirrored: &MirroredParams,
    headers: &HeaderMap,
    arguments: Option<&RawJson>,
) -> Result<(), RpcError> {
    for param in mirrored.params() {
        let header = param.header();
        let mut values = headers.get_all(header).iter();
        let value = values.next();
        if values.next().is_some() {
            return Err(mismatch(format!("the header `{header}` is repeated")));
        }
        let value = match value {
            None => None,
            Some(value) => {
                let text = value.to_str().ok().and_then(header::decode);
                let invalid = || mismatch(format!("the header `{header}` has invalid characters or base64"));
                Some(text.ok_or_else(invalid)?)
            }
        };
        if param.value(arguments).as_deref() != value.as_deref() {
            let message = format!(
                "the header `{header}` differs from the argument `{}`",
                param.path().join(".")
            );
            return Err(mismatch(message));
        }
    }
    Ok(())
}
