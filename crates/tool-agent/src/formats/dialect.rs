//! JSON Schemas in the dialects of providers.

use raw_json::RawJson;
use serde_json::{Map, Value};

use super::{NoteKind, ProviderFormat};

/// A note without its tool: JSON Pointer, what became of it, and what it is.
pub(super) type Note = (String, NoteKind, String);

/// Keywords at the root of a schema that OpenAI and Anthropic refuse.
const REFUSED_ROOT: [&str; 5] = ["oneOf", "anyOf", "allOf", "not", "enum"];
/// Keywords that Gemini reads (Gemini API, `GenerationConfig.responseJsonSchema`, which has the same dialect).
const GEMINI: [&str; 21] = [
    "$anchor",
    "$defs",
    "$id",
    "$ref",
    "additionalProperties",
    "anyOf",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "oneOf",
    "prefixItems",
    "properties",
    "propertyOrdering",
    "required",
    "title",
    "type",
];
/// Keywords of a property that Ollama passes to the templates of models (`api.ToolProperty`).
const OLLAMA: [&str; 6] = ["anyOf", "description", "enum", "items", "properties", "type"];
/// Keywords whose value is a schema.
pub(super) const SCHEMA: [&str; 11] = [
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is a list of schemas.
pub(super) const SCHEMAS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value is a map of schemas.
pub(super) const SCHEMA_MAPS: [&str; 5] = [
    "$defs",
    "definitions",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

/// Returns a schema in the dialect of a provider. It keeps its text if nothing has to be changed.
pub(super) fn adapt(format: ProviderFormat, schema: &RawJson, notes: &mut Vec<Note>) -> RawJson {
    let Ok(mut after) = schema.to::<Value>() else {
        return schema.clone();
    };
    let n_notes = notes.len();
    let mut is_changed = false;
    let Value::Object(root) = &mut after else {
        notes.push((
            String::new(),
            NoteKind::Changed,
            "the schema takes anything, and the format takes objects".to_owned(),
        ));
        return RawJson::from(serde_json::json!({"type": "object", "properties": {}}));
    };
    // Arguments are an object in every protocol, so that this says nothing new.
    if root.get("type").is_none_or(|kind| kind != "object") {
        let before = root.insert("type".to_owned(), Value::from("object"));
        let is_object = |kinds: &Value| {
            kinds
                .as_array()
                .is_some_and(|kinds| kinds.contains(&"object".into()))
        };
        if before.is_some_and(|kinds| !is_object(&kinds)) {
            let message = "`type` at the root of a schema: arguments are an object";
            notes.push(("/type".to_owned(), NoteKind::Changed, message.to_owned()));
        }
        is_changed = true;
    }
    match format {
        ProviderFormat::OpenAiChat | ProviderFormat::OpenAiResponses => {
            if !root.contains_key("properties") {
                root.insert("properties".to_owned(), Value::Object(Map::new()));
                is_changed = true;
            }
            refuse_root(root, notes);
        }
        ProviderFormat::Anthropic => refuse_root(root, notes),
        ProviderFormat::Gemini => {
            walk(&mut after, &mut String::new(), &mut |schema, at| {
                remove_unknown(schema, at, notes);
            });
        }
        ProviderFormat::Ollama => is_changed |= adapt_ollama(root, notes),
    }
    let mut made = notes[n_notes..].iter();
    is_changed |= made.any(|(_, kind, _)| *kind != NoteKind::Ignored);
    if is_changed {
        RawJson::from(after)
    } else {
        schema.clone()
    }
}

/// Removes what a root must not have.
fn refuse_root(root: &mut Map<String, Value>, notes: &mut Vec<Note>) {
    for key in REFUSED_ROOT {
        if root.remove(key).is_some() {
            notes.push((
                format!("/{key}"),
                NoteKind::Removed,
                format!("`{key}` at the root of a schema"),
            ));
        }
    }
}

fn remove_unknown(schema: &mut Map<String, Value>, at: &str, notes: &mut Vec<Note>) {
    if schema.keys().all(|key| GEMINI.contains(&key.as_str())) {
        return;
    }
    let unknown: Vec<String> = schema
        .keys()
        .filter(|key| !GEMINI.contains(&key.as_str()))
        .cloned()
        .collect();
    for key in unknown {
        let value = schema.remove(&key);
        // The older name of the same thing.
        if key == "definitions"
            && !schema.contains_key("$defs")
            && let Some(definitions) = value
        {
            schema.insert(key, definitions);
            notes.push((
                format!("{at}/definitions"),
                NoteKind::Ignored,
                "references into `definitions`; write `$defs`".to_owned(),
            ));
            continue;
        }
        notes.push((
            format!("{at}/{}", escaped(&key)),
            NoteKind::Removed,
            format!("`{key}`"),
        ));
    }
}

/// Notes what Ollama does not pass on, and writes schemas that it cannot read in another way. Returns `true` if one was changed.
fn adapt_ollama(root: &mut Map<String, Value>, notes: &mut Vec<Note>) -> bool {
    const ROOT: [&str; 7] = [
        "$defs",
        "$schema",
        "description",
        "items",
        "properties",
        "required",
        "type",
    ];
    let unknown = root.keys().filter(|key| !ROOT.contains(&key.as_str()));
    notes.extend(unknown.map(|key| ignored("", key)));
    let mut is_changed = false;
    each_property(root, "", &mut |property, at| {
        is_changed |= adapt_ollama_property(property, at, notes);
    });
    is_changed
}

/// Adapts a property of Ollama, and the properties in it. Ollama passes on the `items` of a list as they are.
fn adapt_ollama_property(property: &mut Value, at: &str, notes: &mut Vec<Note>) -> bool {
    let mut is_changed = false;
    // Ollama refuses a request with a schema that is no object.
    if let Value::Bool(takes_anything) = *property {
        is_changed = true;
        *property = match takes_anything {
            true => serde_json::json!({}),
            false => serde_json::json!({"not": {}}),
        };
    }
    let Value::Object(members) = property else {
        return is_changed;
    };
    let unknown = members.keys().filter(|key| !OLLAMA.contains(&key.as_str()));
    notes.extend(unknown.map(|key| ignored(at, key)));
    each_property(members, at, &mut |property, at| {
        is_changed |= adapt_ollama_property(property, at, notes);
    });
    if let Some(Value::Array(variants)) = members.get_mut("anyOf") {
        for (index, variant) in variants.iter_mut().enumerate() {
            is_changed |= adapt_ollama_property(variant, &format!("{at}/anyOf/{index}"), notes);
        }
    }
    is_changed
}

/// Calls a function for each property, with its place.
fn each_property(schema: &mut Map<String, Value>, at: &str, visit: &mut dyn FnMut(&mut Value, &str)) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        visit(property, &format!("{at}/properties/{}", escaped(name)));
    }
}

fn ignored(at: &str, key: &str) -> Note {
    (
        format!("{at}/{}", escaped(key)),
        NoteKind::Ignored,
        format!("`{key}`"),
    )
}

/// Calls a function for a schema and each schema in it, with the place of each. `at` is the place of the schema, and is the same
/// afterwards.
pub(super) fn walk(
    schema: &mut Value,
    at: &mut String,
    visit: &mut dyn FnMut(&mut Map<String, Value>, &str),
) {
    let Value::Object(members) = schema else { return };
    visit(members, at);
    let length = at.len();
    for (key, value) in members.iter_mut() {
        let key = key.as_str();
        let (is_map, is_list) = (SCHEMA_MAPS.contains(&key), SCHEMAS.contains(&key));
        if !is_map && !is_list && !SCHEMA.contains(&key) {
            continue;
        }
        push(at, key);
        match value {
            Value::Object(schemas) if is_map => {
                let length = at.len();
                for (name, schema) in schemas {
                    push(at, name);
                    walk(schema, at, visit);
                    at.truncate(length);
                }
            }
            Value::Array(schemas) => {
                let length = at.len();
                for (index, schema) in schemas.iter_mut().enumerate() {
                    push(at, &index.to_string());
                    walk(schema, at, visit);
                    at.truncate(length);
                }
            }
            schema => walk(schema, at, visit),
        }
        at.truncate(length);
    }
}

/// Appends a key to a JSON Pointer.
pub(super) fn push(at: &mut String, key: &str) {
    at.push('/');
    if key.contains(['~', '/']) {
        at.push_str(&escaped(key));
    } else {
        at.push_str(key);
    }
}

/// Escapes a key for a JSON Pointer (RFC 6901).
pub(super) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
