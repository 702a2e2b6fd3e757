//! Check that a schema is usable, without compiling it where its keywords are simple.

use std::collections::HashSet;

use raw_json::RawJson;
use serde_json::{Map, Value};

use crate::{Schema, SchemaError, compile::read};

/// Maximum number of subschemas that are checked without compiling.
const MAX_PLAIN: usize = 500;
/// Names of types.
const TYPES: [&str; 7] = [
    "null", "boolean", "integer", "number", "string", "array", "object",
];

/// Checks that a schema keeps to the rules of its draft, 2020-12 if it names none, and can be compiled. Keeps nothing, and is
/// much faster than [`Schema::compile`] for a schema of common keywords.
///
/// # Errors
/// The errors of [`Schema::compile`], also for forms of older drafts, which that function reads.
///
/// # Examples
/// ```
/// use tool_schema::{RawJson, verify};
///
/// let schema = |text: &str| RawJson::parse(text.to_owned()).unwrap();
/// assert!(verify(&schema(r#"{"type": "object", "properties": {"n": {"minimum": 1}}}"#)).is_ok());
/// assert!(verify(&schema(r#"{"properties": {"n": {"minimum": "1"}}}"#)).is_err());
/// ```
pub fn verify(schema: &RawJson) -> Result<(), SchemaError> {
    let value = read(schema, &mut Vec::new())?;
    let mut n_left = MAX_PLAIN;
    if names_known_draft(&value) && is_plain(&value, &mut n_left) {
        return Ok(());
    }
    Schema::compile_strictly(schema).map(drop)
}

/// Returns `true` if the draft has the rules of [`is_plain`]: draft 4 has others.
fn names_known_draft(schema: &Value) -> bool {
    let Some(uri) = schema.get("$schema") else {
        return true;
    };
    let uri = uri.as_str().unwrap_or_default().trim_end_matches('#');
    ["draft-07/schema", "draft/2020-12/schema"]
        .iter()
        .any(|draft| uri.ends_with(&format!("//json-schema.org/{draft}")))
}

/// Returns `true` if a schema has only common keywords, each with a value that its draft allows.
fn is_plain(schema: &Value, n_left: &mut usize) -> bool {
    let Value::Object(keywords) = schema else {
        return schema.is_boolean();
    };
    if *n_left == 0 {
        return false;
    }
    *n_left -= 1;
    keywords.iter().all(|(keyword, value)| match keyword.as_str() {
        "$schema" | "title" | "description" | "$comment" | "format" => value.is_string(),
        "default" | "const" => true,
        "examples" | "enum" => value.is_array(),
        "deprecated" | "readOnly" | "writeOnly" | "uniqueItems" => value.is_boolean(),
        "type" => is_type(value),
        "required" => is_name_list(value),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            value.is_u64()
        }
        "properties" => value
            .as_object()
            .is_some_and(|members| are_plain(members, n_left)),
        "additionalProperties" | "items" | "not" => is_plain(value, n_left),
        "anyOf" | "oneOf" | "allOf" => value
            .as_array()
            .is_some_and(|list| !list.is_empty() && list.iter().all(|schema| is_plain(schema, n_left))),
        // Extensions have no meaning for validation.
        _ => keyword.starts_with("x-"),
    })
}

fn are_plain(members: &Map<String, Value>, n_left: &mut usize) -> bool {
    members.values().all(|schema| is_plain(schema, n_left))
}

fn is_type(value: &Value) -> bool {
    let is_known = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
    match value {
        Value::Array(names) => is_name_list(value) && !names.is_empty() && names.iter().all(is_known),
        name => is_known(name),
    }
}

/// Returns `true` for a list of different texts.
fn is_name_list(value: &Value) -> bool {
    let mut seen = HashSet::new();
    value.as_array().is_some_and(|names| {
        names
            .iter()
            .all(|name| name.as_str().is_some_and(|name| seen.insert(name)))
    })
}
