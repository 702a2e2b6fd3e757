//! Results in the shapes that methods want.

use mcp_server::Answer;
use mcp_wire::{Request, RpcError, code, method};
use raw_json::RawJson;
use serde_json::json;

use crate::{offer::Entry, template};

/// A result that says this.
pub(crate) fn text(request: &Request, entry: Option<&Entry>, text: &str) -> Result<Answer, RpcError> {
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
            json!({"contents": [content], "ttlMs": 0, "cacheScope": "private"})
        }
        other => {
            let message = format!("the scenario answers `{other}` with a text, which has no place there");
            return Err(RpcError::new(code::INTERNAL_ERROR, message));
        }
    };
    Ok(RawJson::from(result).into())
}

/// A tool's result that says that it failed.
pub(crate) fn failure(method: &str, text: &str) -> Result<Answer, RpcError> {
    if method != method::TOOLS_CALL {
        return Err(RpcError::new(code::INTERNAL_ERROR, text));
    }
    let result = json!({"content": [{"type": "text", "text": text}], "isError": true});
    Ok(RawJson::from(result).into())
}

/// A tool's structured content with its text beside it.
pub(crate) fn structured(content: &RawJson) -> Answer {
    let text = RawJson::from(json!([{"type": "text", "text": content.as_str()}]));
    RawJson::object()
        .with_members(&[("content", text), ("structuredContent", content.clone())])
        .expect("an empty object is an object")
        .into()
}

/// What the parts of a template of URIs stand for.
pub(crate) fn parts(template: &str, uri: &str) -> RawJson {
    let parts = template::matches(template, uri).unwrap_or_default();
    let parts: serde_json::Map<_, _> = parts
        .into_iter()
        .map(|(name, value)| (name, value.into()))
        .collect();
    RawJson::from(serde_json::Value::Object(parts))
}
