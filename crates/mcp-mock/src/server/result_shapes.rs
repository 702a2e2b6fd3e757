//! Results in the shapes of their methods.

use mcp_server::Answer;
use mcp_wire::{Era, Request, RpcError, code, method};
use raw_json::{JsonKind, RawJson};

use crate::{json::array, reply::template, server::catalog::CatalogEntry};

/// Returns a result with this text.
pub(crate) fn text(
    request: &Request,
    entry: Option<&CatalogEntry>,
    text: &str,
    era: Era,
) -> Result<Answer, RpcError> {
    let block = text_block(text);
    let result = match &*request.method {
        method::TOOLS_CALL => RawJson::from_members(&[("content", array(&[block]))]),
        method::PROMPTS_GET => {
            let message = RawJson::from_members(&[("role", RawJson::from("user")), ("content", block)]);
            RawJson::from_members(&[("messages", array(&[message]))])
        }
        method::RESOURCES_READ => {
            let uri = request.params.as_ref().and_then(|params| params.get("uri"));
            let uri = uri
                .filter(|uri| uri.kind() == JsonKind::String)
                .unwrap_or_default();
            let mut content = vec![("uri", uri), ("text", RawJson::from(text))];
            content.extend(entry.and_then(|entry| Some(("mimeType", entry.listed.get("mimeType")?))));
            let content = RawJson::from_members(&content);
            RawJson::from_members(&[("contents", array(&[content]))])
        }
        other => {
            let message = format!(
                "the scenario answers `{other}` with a text, which the result of this method cannot hold"
            );
            return Err(RpcError::new(code::INTERNAL_ERROR, message));
        }
    };
    Ok(match &*request.method {
        method::RESOURCES_READ => cacheable(result, era),
        _ => result,
    }
    .into())
}

/// Adds the cache members of a result, which only modern clients receive (MCP 2026-07-28).
pub(crate) fn cacheable(result: RawJson, era: Era) -> RawJson {
    if era == Era::Legacy {
        return result;
    }
    let members = [
        ("ttlMs", RawJson::from(0_u64)),
        ("cacheScope", RawJson::from("private")),
    ];
    result.with_members(&members).expect("a result is an object")
}

/// Returns a tool result with `isError`.
pub(crate) fn failure(method: &str, text: &str) -> Result<Answer, RpcError> {
    if method != method::TOOLS_CALL {
        return Err(RpcError::new(code::INTERNAL_ERROR, text));
    }
    let content = array(&[text_block(text)]);
    Ok(RawJson::from_members(&[("content", content), ("isError", RawJson::from(true))]).into())
}

/// Returns a tool's structured content and its JSON as text.
pub(crate) fn structured(content: &RawJson) -> Answer {
    let text = array(&[text_block(content.as_str())]);
    RawJson::from_members(&[("content", text), ("structuredContent", content.clone())]).into()
}

/// Returns the values of a URI template's parts.
pub(crate) fn parts(template: &str, uri: &str) -> RawJson {
    let parts = template::matches(template, uri).unwrap_or_default();
    let parts: Vec<_> = parts
        .iter()
        .map(|(name, value)| (name.as_str(), RawJson::from(value.as_str())))
        .collect();
    RawJson::from_members(&parts)
}

fn text_block(text: &str) -> RawJson {
    RawJson::from_members(&[("type", RawJson::from("text")), ("text", RawJson::from(text))])
}
