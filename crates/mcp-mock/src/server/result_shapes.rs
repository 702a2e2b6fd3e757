//! Results in the shapes of their methods.

use mcp_server::Answer;
use mcp_wire::{Era, Request, RpcError, code, method};
use raw_json::RawJson;
use serde_json::json;

use crate::{reply::template, server::catalog::CatalogEntry};

/// Returns a result with this text.
pub(crate) fn text(
    request: &Request,
    entry: Option<&CatalogEntry>,
    text: &str,
    era: Era,
) -> Result<Answer, RpcError> {
    let block = json!({"type": "text", "text": text});
    let result = match &*request.method {
        method::TOOLS_CALL => json!({"content": [block]}),
        method::PROMPTS_GET => json!({"messages": [{"role": "user", "content": block}]}),
        method::RESOURCES_READ => {
            let uri = request
                .params
                .as_ref()
                .and_then(|params| params.get("uri")?.string());
            let mut content = json!({"uri": uri, "text": text});
            let mime_type = entry.and_then(|entry| entry.listed.get("mimeType")?.string());
            if let Some(mime_type) = mime_type {
                content["mimeType"] = json!(mime_type);
            }
            json!({"contents": [content]})
        }
        other => {
            let message = format!(
                "the scenario answers `{other}` with a text, which the result of this method cannot hold"
            );
            return Err(RpcError::new(code::INTERNAL_ERROR, message));
        }
    };
    let result = RawJson::from(result);
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
    let result = json!({"content": [{"type": "text", "text": text}], "isError": true});
    Ok(RawJson::from(result).into())
}

/// Returns a tool's structured content and its JSON as text.
pub(crate) fn structured(content: &RawJson) -> Answer {
    let text = RawJson::from(json!([{"type": "text", "text": content.as_str()}]));
    RawJson::from_members(&[("content", text), ("structuredContent", content.clone())]).into()
}

/// Returns the values of a URI template's parts.
pub(crate) fn parts(template: &str, uri: &str) -> RawJson {
    let parts = template::matches(template, uri).unwrap_or_default();
    let parts: serde_json::Map<_, _> = parts
        .into_iter()
        .map(|(name, value)| (name, value.into()))
        .collect();
    RawJson::from(serde_json::Value::Object(parts))
}
