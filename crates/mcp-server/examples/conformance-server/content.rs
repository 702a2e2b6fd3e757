//! Results and their parts.

use mcp_server::{Answer, RequestContext};
use mcp_wire::{RpcError, code};
use raw_json::RawJson;
use serde_json::{Value, json};

/// A red pixel as PNG.
pub(crate) const IMAGE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A moment of silence as WAV.
pub(crate) const AUDIO: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

/// A result that clients may keep for a minute.
pub(crate) fn cacheable(mut result: Value) -> Answer {
    result["ttlMs"] = json!(60_000);
    result["cacheScope"] = json!("public");
    RawJson::from(result).into()
}

/// The result of a tool with these blocks of content.
pub(crate) fn blocks(content: &Value) -> Answer {
    RawJson::from(json!({ "content": content })).into()
}

/// The result of a tool that says something.
pub(crate) fn text(text: &str) -> Answer {
    blocks(&json!([{"type": "text", "text": text}]))
}

/// The result of a tool that failed.
pub(crate) fn failure(text: &str) -> Answer {
    RawJson::from(json!({"content": [{"type": "text", "text": text}], "isError": true})).into()
}

/// What went wrong with the parameters.
pub(crate) fn invalid(message: impl Into<String>) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, message)
}

/// A text among the arguments.
pub(crate) fn argument(cx: &RequestContext, name: &str) -> Result<String, RpcError> {
    let argument = cx.arguments().and_then(|arguments| arguments.get(name)?.string());
    argument.ok_or_else(|| invalid(format!("`{name}` must be a string")))
}
