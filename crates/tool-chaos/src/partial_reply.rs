use raw_json::{JsonKind, RawJson};
use serde_json::Value;
use tool_core::{Body, Reply};

/// Removes half of a reply: the second half of an object's members, of a list's items or of a text's characters. In an MCP result,
/// it removes half of the content and half of the structured content.
pub(crate) fn halve(reply: &mut Reply) {
    match &mut reply.body {
        Body::Value(value) => *value = half(value),
        Body::Result(result) => {
            let halves: Vec<_> = ["content", "structuredContent", "messages", "contents"]
                .into_iter()
                .filter_map(|key| Some((key, half(&result.get(key)?))))
                .collect();
            if let Ok(halved) = result.with_members(&halves) {
                *result = halved;
            }
        }
    }
}

fn half(value: &RawJson) -> RawJson {
    match value.kind() {
        JsonKind::Object => {
            let members: Vec<_> = value.members().collect();
            let kept = members.len() / 2;
            let lost: Vec<String> = members
                .into_iter()
                .skip(kept)
                .map(|(key, _)| key.to_string())
                .collect();
            let lost: Vec<&str> = lost.iter().map(String::as_str).collect();
            value.without_members(&lost).unwrap_or_default()
        }
        JsonKind::Array => {
            let items: Vec<_> = value.items().collect();
            let kept = items[..items.len() / 2].iter().map(RawJson::as_str);
            let text = format!("[{}]", kept.collect::<Vec<_>>().join(","));
            RawJson::parse(text).unwrap_or_default()
        }
        JsonKind::String => {
            let text = value.string().unwrap_or_default();
            let kept = text.chars().count() / 2;
            RawJson::from(Value::from(text.chars().take(kept).collect::<String>()))
        }
        // A number or a boolean has no half.
        _ => RawJson::default(),
    }
}
