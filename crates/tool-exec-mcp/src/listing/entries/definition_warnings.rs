//! Warnings about definitions that are usable and lack something that models need.

use raw_json::{JsonKind, RawJson};
use serde_json::Value;
use tool_core::{Descriptor, Feature, ListWarning, MAX_NAME};
use tool_scan::escape_line;

use super::list_entry::ListEntry;

/// Maximum length of a description, in characters, that all model providers take.
const MAX_DESCRIPTION: usize = 1024;

/// Kinds of warnings about definitions that lack something.
const KINDS: [&str; 6] = [
    "description_empty",
    "description_over_1024",
    "qualified_name_over_64",
    "docker_arguments_form",
    "input_schema_missing",
    "array_without_items",
];

/// Returns `true` for a kind of warning about a definition that lacks something, and hides nothing.
pub(in crate::listing) fn is_incomplete(kind: &str) -> bool {
    KINDS.contains(&kind)
}

/// Returns the warnings about the definition of a tool. Other entries have none.
pub(super) fn definition_warnings(entry: &ListEntry<'_>, descriptor: &Descriptor) -> Vec<ListWarning> {
    let mut warnings = Vec::new();
    if descriptor.feature != Feature::Tool {
        return warnings;
    }
    let mut warn = |kind: &'static str, message: String| {
        debug_assert!(is_incomplete(kind), "{kind}");
        let name = Some(escape_line(&descriptor.name).into_owned());
        warnings.push(ListWarning::new(Some(Feature::Tool), name, kind, message));
    };
    let n_characters = descriptor.description.chars().count();
    if descriptor.description.trim().is_empty() {
        let message = "it has no description, by which models choose tools";
        warn("description_empty", message.to_owned());
    } else if n_characters > MAX_DESCRIPTION {
        let message =
            format!("its description has {n_characters} characters; some models take only {MAX_DESCRIPTION}");
        warn("description_over_1024", message);
    }
    if let Some(whole) = entry.shortened_name() {
        let message = format!(
            "its name is shortened: `{}` has more than {MAX_NAME} characters",
            escape_line(&whole)
        );
        warn("qualified_name_over_64", message);
    }
    let is_given = |key: &str, kind: JsonKind| entry.member(key).is_some_and(|value| value.kind() == kind);
    if !is_given("inputSchema", JsonKind::Object) {
        if is_given("arguments", JsonKind::Array) {
            let message = "it describes its arguments by a list `arguments` instead of an `inputSchema`";
            warn("docker_arguments_form", message.to_owned());
        } else {
            let message = "it has no `inputSchema`: any arguments are accepted";
            warn("input_schema_missing", message.to_owned());
        }
    } else if let Some(place) = array_without_items(&descriptor.input_schema) {
        let message = format!(
            "the list at `{}` of its `inputSchema` has no `items`, which some models require",
            escape_line(&place)
        );
        warn("array_without_items", message);
    }
    warnings
}

/// Returns the first subschema of type `array` that says nothing about its items, as a JSON Pointer.
fn array_without_items(schema: &RawJson) -> Option<String> {
    // Most schemas have no such list, and need no tree.
    if !schema.as_str().contains("array") {
        return None;
    }
    let root: Value = schema.to().ok()?;
    let mut pending = vec![(String::new(), &root)];
    while let Some((place, schema)) = pending.pop() {
        let Value::Object(keywords) = schema else { continue };
        let is_array = match keywords.get("type") {
            Some(Value::String(kind)) => kind == "array",
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
            _ => false,
        };
        let says_items = ["items", "prefixItems", "$ref", "const", "enum"];
        if is_array && !says_items.iter().any(|keyword| keywords.contains_key(*keyword)) {
            return Some(place);
        }
        for (keyword, value) in keywords {
            let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
            match (keyword.as_str(), value) {
                ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(schemas)) => {
                    let schemas = schemas.iter();
                    pending.extend(
                        schemas.map(|(key, schema)| (format!("{place}/{keyword}/{}", escaped(key)), schema)),
                    );
                }
                ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(schemas)) => {
                    let schemas = schemas.iter().enumerate();
                    pending.extend(
                        schemas.map(|(index, schema)| (format!("{place}/{keyword}/{index}"), schema)),
                    );
                }
                ("items" | "additionalProperties" | "not" | "if" | "then" | "else" | "contains", schema) => {
                    pending.push((format!("{place}/{keyword}"), schema));
                }
                _ => {}
            }
        }
    }
    None
}
