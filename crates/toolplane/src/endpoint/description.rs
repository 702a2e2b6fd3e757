//! Descriptors of tools as the protocol has them.

use raw_json::{JsonKind, RawJson};
use serde_json::Value;
use tool_core::{Tool, Trust};

/// Maximum number of arguments that the syntax of a command line shows.
const MAX_SHOWN: usize = 12;
/// Member of a result that is no object: see [`as_object`].
pub(super) const VALUE: &str = "value";

/// Returns the descriptor of a tool.
pub(super) fn descriptor(tool: &Tool) -> RawJson {
    let descriptor = tool.descriptor();
    let origin = match tool.executor().dyn_protocol() {
        None => "local",
        Some(_) => "remote",
    };
    RawJson::from_members(&[
        ("name", RawJson::from(&**tool.name())),
        ("description", RawJson::from(descriptor.description.as_str())),
        ("command", RawJson::from(command(tool).as_str())),
        ("origin", RawJson::from(origin)),
        ("safety", RawJson::from(safety(tool).as_str())),
        ("input_schema", descriptor.input_schema.clone()),
        ("result_schema", result_schema(descriptor.output_schema.as_ref())),
    ])
}

/// Returns a result as an object, as the protocol wants it: another value is its member `value`.
pub(super) fn as_object(value: RawJson) -> RawJson {
    match value.kind() {
        JsonKind::Object => value,
        _ => RawJson::from_members(&[(VALUE, value)]),
    }
}

/// Returns the schema of [`as_object`] of a result with this schema.
fn result_schema(schema: Option<&RawJson>) -> RawJson {
    let kind = ("type", RawJson::from("object"));
    let stated = schema.and_then(|schema| Some((schema, schema.get("type")?.string()?)));
    match stated {
        Some((schema, stated)) if stated == "object" => schema.clone(),
        Some((schema, _)) => RawJson::from_members(&[
            kind,
            ("properties", RawJson::from_members(&[(VALUE, schema.clone())])),
            ("required", RawJson::from_items(&[RawJson::from(VALUE)])),
        ]),
        // Either form is possible.
        None => RawJson::from_members(&[kind]),
    }
}

/// Returns the syntax of a call on the command line, such as `toolplane call weather city=STRING [unit=STRING]`.
fn command(tool: &Tool) -> String {
    let schema: Value = tool.descriptor().input_schema.to().unwrap_or_default();
    let required: Vec<&str> = schema["required"]
        .as_array()
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let mut words = format!("toolplane call {}", tool.name());
    let Some(properties) = schema["properties"].as_object() else {
        return words;
    };
    let is_required = |name: &str| required.contains(&name);
    let (first, second): (Vec<_>, Vec<_>) = properties.iter().partition(|(name, _)| is_required(name));
    for (name, property) in first.into_iter().chain(second).take(MAX_SHOWN) {
        let kind = property["type"].as_str().unwrap_or("value").to_ascii_uppercase();
        let word = match is_plain(name) {
            true => format!("{name}={kind}"),
            false => format!("'{}={kind}'", name.escape_debug()),
        };
        match is_required(name) {
            true => words.push_str(&format!(" {word}")),
            false => words.push_str(&format!(" [{word}]")),
        }
    }
    if properties.len() > MAX_SHOWN {
        words.push_str(" …");
    }
    words
}

fn is_plain(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

/// Returns a summary of what is declared about a tool. A hint of a server is one, and is marked as its own.
fn safety(tool: &Tool) -> String {
    let descriptor = tool.descriptor();
    let metadata = &descriptor.metadata;
    let annotations = tool.definition().get("annotations");
    let hint = |key: &str| {
        let hint = annotations.as_ref()?.get(key)?;
        match hint.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    };
    let by = |declared: Option<bool>| match (declared, descriptor.origin.trust) {
        (None, Trust::Upstream) => " (as its server says)",
        _ => "",
    };
    let mut parts = Vec::new();
    match (hint("readOnlyHint"), hint("destructiveHint")) {
        (Some(true), _) => parts.push(format!("read-only{}", by(metadata.read_only))),
        (_, Some(true)) => parts.push(format!("may destroy data{}", by(metadata.read_only))),
        _ => {}
    }
    if hint("idempotentHint") == Some(true) {
        parts.push(format!(
            "calling it twice has the effect of calling it once{}",
            by(metadata.idempotent)
        ));
    }
    if !metadata.required_permissions.is_empty() {
        parts.push(format!(
            "needs the permissions {}",
            metadata.required_permissions.join(", ")
        ));
    }
    if let Some(classification) = metadata.data_classification {
        parts.push(format!("its data are {}", classification.as_str()));
    }
    let mut facts = tool_exec_endpoint::EndpointExecutor::facts(descriptor).into_iter();
    if let Some((_, own)) = facts.find(|(key, _)| *key == "safety") {
        parts.push(format!("its endpoint says: {own}"));
    }
    match parts.is_empty() {
        true => "nothing is declared: it may change data".to_owned(),
        false => parts.join("; "),
    }
}
