//! Output of a tool's reply.

use raw_json::{JsonKind, JsonLimits};
use tool_scan::escape_json;
use toolplane::{
    RawJson,
    core::{Body, LayerDecision, Reply},
};

use super::explain;
use crate::{
    command::Format,
    error::CliError,
    output::{Console, text, yaml::yaml},
};

/// Prints a reply: verbatim for programs, by its content for people.
pub(super) fn print(
    reply: &Reply,
    notes: Option<&[LayerDecision]>,
    console: Console,
) -> Result<(), CliError> {
    let raw = reply.raw();
    match (console.format, notes) {
        (Format::Table, notes) => {
            if let Some(notes) = notes {
                console.stderr(&explain::table(notes));
            }
            console.data(&for_people(reply))
        }
        (Format::Json, None) => console.data(&escape_json(raw.as_str())),
        (Format::Yaml, None) => console.data(&yaml(raw)),
        (format, Some(notes)) => {
            let both = format!(r#"{{"result":{raw},"explain":{}}}"#, explain::json(notes));
            match format {
                Format::Yaml => console.data(&yaml(&wrapped(both)?)),
                _ => console.data(&escape_json(&both)),
            }
        }
    }
}

fn wrapped(text: String) -> Result<RawJson, CliError> {
    // The wrapping adds one level of depth.
    let limits = JsonLimits::RELAY.with_depth(JsonLimits::RELAY.depth + 1);
    RawJson::parse_within(text, limits)
        .map_err(|error| CliError::failed("the result cannot be shown").with_source(&error))
}

fn for_people(reply: &Reply) -> String {
    match &reply.body {
        Body::Value(value) => shown(value),
        Body::Result(result) => {
            let structured = result
                .get("structuredContent")
                .filter(|value| value.kind() != JsonKind::Null);
            let blocks = result.get("content").and_then(|content| items(&content));
            if blocks.is_none() && structured.is_none() {
                return text::lines(&result.indented()).into_owned();
            }
            let mut parts: Vec<String> = Vec::new();
            for block in blocks.unwrap_or_default() {
                let text = block_text(&block);
                // MCP asks servers to repeat structured content as text; it is shown once.
                let repeated = structured
                    .as_ref()
                    .is_some_and(|structured| is_same(&text, structured));
                if !repeated {
                    parts.push(text);
                }
            }
            parts.extend(
                structured
                    .as_ref()
                    .map(|value| text::lines(&value.indented()).into_owned()),
            );
            parts.join("\n")
        }
    }
}

fn items(content: &RawJson) -> Option<Vec<RawJson>> {
    (content.kind() == JsonKind::Array).then(|| content.items().collect())
}

/// Formats a string as text, any other value as JSON.
fn shown(value: &RawJson) -> String {
    match value.string() {
        Some(text) => text::lines(&text).into_owned(),
        None => text::lines(&value.indented()).into_owned(),
    }
}

/// Formats a content block: text verbatim, anything else by its kind.
fn block_text(block: &RawJson) -> String {
    let text = |object: &RawJson, key: &str| object.get(key).and_then(|value| value.string());
    let of = |object: &RawJson| text(object, "mimeType").unwrap_or_else(|| "unknown type".to_owned());
    let shown = match text(block, "type").as_deref() {
        Some("text") => text(block, "text").unwrap_or_default(),
        Some(kind @ ("image" | "audio")) => {
            let bytes = text(block, "data").map_or(0, |data| data.len() / 4 * 3);
            format!("[{kind}, {}, {bytes} bytes; `-o json` shows it]", of(block))
        }
        Some("resource_link") => {
            let uri = text(block, "uri").unwrap_or_default();
            format!("[resource {uri}]")
        }
        Some("resource") => {
            let resource = block.get("resource").unwrap_or_default();
            match text(&resource, "text") {
                Some(content) => content,
                None => format!(
                    "[resource {}, {}]",
                    text(&resource, "uri").unwrap_or_default(),
                    of(&resource)
                ),
            }
        }
        _ => block.indented(),
    };
    text::lines(&shown).into_owned()
}

/// Returns `true` if a text is this value as JSON.
fn is_same(text: &str, value: &RawJson) -> bool {
    RawJson::parse(text.to_owned()).is_ok_and(|text| raw_json::canonical(&text) == raw_json::canonical(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn people(json: &str) -> String {
        for_people(&Reply::result(RawJson::parse(json.to_owned()).unwrap(), false))
    }

    #[test]
    fn contents_are_shown_by_what_they_are() {
        let cases = [
            (
                r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
                "a\nb",
            ),
            (
                r#"{"content":[{"type":"text","text":"{\"n\": 1}"}],"structuredContent":{"n":1}}"#,
                "{\n  \"n\": 1\n}",
            ),
            (
                r#"{"content":[{"type":"text","text":"one"}],"structuredContent":{"n":1}}"#,
                "one\n{\n  \"n\": 1\n}",
            ),
            (
                r#"{"content":[{"type":"image","mimeType":"image/png","data":"AAAA"}]}"#,
                "[image, image/png, 3 bytes; `-o json` shows it]",
            ),
            (
                r#"{"content":[{"type":"resource_link","uri":"file:///a"}]}"#,
                "[resource file:///a]",
            ),
            (
                r#"{"content":[{"type":"resource","resource":{"uri":"a:b","text":"inside"}}]}"#,
                "inside",
            ),
            (
                r#"{"content":[{"type":"new","x":1}]}"#,
                "{\n  \"type\": \"new\",\n  \"x\": 1\n}",
            ),
            (r#"{"content":[]}"#, ""),
            (r#"{"other":1}"#, "{\n  \"other\": 1\n}"),
        ];
        for (json, expected) in cases {
            assert_eq!(people(json), expected, "{json}");
        }
    }
}
