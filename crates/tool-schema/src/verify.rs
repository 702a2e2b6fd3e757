//! Check that a schema is usable, without compiling it or making a tree of it where its keywords are simple.

use std::borrow::Cow;

use raw_json::{JsonKind, JsonLimits, RawJson, TextPart};
use serde_json::Value;

use crate::{
    Schema, SchemaError,
    budget::{MAX_DEPTH, MAX_TEXT},
};

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
    let limits = JsonLimits::STRICT.with_depth(MAX_DEPTH);
    let mut n_left = MAX_PLAIN;
    let part = schema.as_part();
    if schema.len() <= MAX_TEXT
        && raw_json::validate(schema.as_str(), limits).is_ok()
        && names_known_draft(part)
        && is_plain(part, &mut n_left)
    {
        return Ok(());
    }
    Schema::compile_strictly(schema).map(drop)
}

/// Returns `true` if the draft has the rules of [`is_plain`]: draft 4 has others.
fn names_known_draft(schema: TextPart<'_>) -> bool {
    let Some(uri) = schema.get("$schema") else {
        return true;
    };
    let uri = uri.text().unwrap_or_default();
    let uri = uri.trim_end_matches('#');
    ["draft-07/schema", "draft/2020-12/schema"]
        .iter()
        .any(|draft| uri.ends_with(&format!("//json-schema.org/{draft}")))
}

/// Returns `true` if a schema has only common keywords, each with a value that its draft allows. Text that no tree can hold, such
/// as half a surrogate pair or a number beyond a double, is not plain.
fn is_plain(schema: TextPart<'_>, n_left: &mut usize) -> bool {
    match schema.kind() {
        JsonKind::Object => {}
        kind => return kind == JsonKind::Bool,
    }
    if *n_left == 0 {
        return false;
    }
    *n_left -= 1;
    schema.parts().all(|(keyword, value)| match &*keyword {
        "$schema" | "title" | "description" | "$comment" | "format" => value.text().is_some(),
        "default" | "const" => is_readable(value),
        "examples" | "enum" => value.kind() == JsonKind::Array && value.items().all(is_readable),
        "deprecated" | "readOnly" | "writeOnly" | "uniqueItems" => value.kind() == JsonKind::Bool,
        "type" => is_type(value),
        "required" => is_name_list(value),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
            value.kind() == JsonKind::Number && is_readable(value)
        }
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            value.as_str().parse::<u64>().is_ok()
        }
        "properties" => value.kind() == JsonKind::Object && are_plain(value, n_left),
        "additionalProperties" | "items" | "not" => is_plain(value, n_left),
        "anyOf" | "oneOf" | "allOf" => {
            let mut schemas = value.items().peekable();
            schemas.peek().is_some() && schemas.all(|schema| is_plain(schema, n_left))
        }
        // Extensions have no meaning for validation.
        _ => keyword.starts_with("x-") && is_readable_key(&keyword) && is_readable(value),
    })
}

fn are_plain(members: TextPart<'_>, n_left: &mut usize) -> bool {
    let mut members = members.parts();
    members.all(|(name, schema)| is_readable_key(&name) && is_plain(schema, n_left))
}

/// Returns `true` if a tree can hold a value.
fn is_readable(value: TextPart<'_>) -> bool {
    match value.kind() {
        JsonKind::String => value.text().is_some(),
        JsonKind::Null | JsonKind::Bool => true,
        _ => serde_json::from_str::<Value>(value.as_str()).is_ok(),
    }
}

/// Returns `false` for a key that may have no decoded form, which keeps its escapes.
fn is_readable_key(key: &str) -> bool {
    !key.contains('\\')
}

fn is_type(value: TextPart<'_>) -> bool {
    let is_known = |name: TextPart<'_>| name.text().is_some_and(|name| TYPES.contains(&&*name));
    match value.kind() {
        JsonKind::Array => {
            let mut names = value.items().peekable();
            is_name_list(value) && names.peek().is_some() && names.all(is_known)
        }
        _ => is_known(value),
    }
}

/// Returns `true` for a list of different texts.
fn is_name_list(value: TextPart<'_>) -> bool {
    let names: Option<Vec<Cow<'_, str>>> = value.items().map(|name| name.text()).collect();
    value.kind() == JsonKind::Array
        && names.is_some_and(|mut names| {
            names.sort_unstable();
            names.is_sorted_by(|a, b| a < b)
        })
}
