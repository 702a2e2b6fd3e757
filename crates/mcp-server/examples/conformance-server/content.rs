//! Results and their parts.

use mcp_server::{Answer, RequestContext};
use mcp_wire::{RpcError, code};
use raw_json::RawJson;
use serde_json::{Value, json};

/// Red pixel as PNG.
pub(crate) const IMAGE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// Moment of silence as WAV.
pub(crate) const AUDIO: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

/// Creates a result that clients may cache for a minute.
pub(crate) fn cacheable(mut result: Value) -> Answer {
    result["ttlMs"] = json!(60_000);
    result["cacheScope"] = json!("public");
    RawJson::from(result).into()
}

/// Creates the result of a tool with these content blocks.
pub(crate) fn blocks(content: &Value) -> Answer {
    RawJson::from(json!({ "content": content })).into()
}

/// Creates the result of a tool with a text.
pub(crate) fn text(text: &str) -> Answer {
    blocks(&json!([{"type": "text", "text": text}]))
}

/// Creates the result of a failed tool.
pub(crate) fn failure(text: &str) -> Answer {
    RawJson::from(json!({"content": [{"type": "text", "text": text}], "isError": true})).into()
}

/// Creates the error of invalid parameters.
pub(crate) fn invalid(message: impl Into<String>) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, message)
}

/// Returns a string argument.
pub(crate) fn argument(cx: &RequestContext, name: &str) -> Result<String, RpcError> {
    let argument = cx.arguments().and_then(|arguments| arguments.get(name)?.string());
    argument.ok_or_else(|| invalid(format!("`{name}` must be a string")))
}
