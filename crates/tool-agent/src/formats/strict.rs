//! Strict mode of OpenAI: every object is closed, and every property is required (OpenAI, "Structured Outputs", supported schemas).

use raw_json::{JsonKind, RawJson};
use serde_json::{Map, Value, json};

use super::{
    NoteKind,
    dialect::{Note, escaped, push},
};

/// Formats of texts that strict mode knows.
const FORMATS: [&str; 9] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "time",
    "uuid",
];
/// Keywords that have no meaning for values, and are left out.
const ANNOTATIONS: [&str; 9] = [
    "$anchor",
    "$comment",
    "$id",
    "$schema",
    "default",
    "deprecated",
    "examples",
    "readOnly",
    "writeOnly",
];
/// Keywords that strict mode cannot express.
const REFUSED: [&str; 19] = [
    "allOf",
    "contains",
    "contentSchema",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "maxContains",
    "maxProperties",
    "minContains",
    "minProperties",
    "not",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Maximum depth of schemas that are converted.
const MAX_DEPTH: usize = 32;

/// Returns a schema for strict mode.
///
/// # Errors
/// The place and the reason for which the schema cannot be expressed.
pub(super) fn strict(schema: &RawJson, notes: &mut Vec<Note>) -> Result<RawJson, (String, String)> {
    let mut converted: Value = schema
        .to()
        .map_err(|_| (String::new(), "the schema cannot be read".to_owned()))?;
    if let Value::Object(root) = &mut converted {
        root.entry("type").or_insert_with(|| Value::from("object"));
        for key in ["anyOf", "oneOf", "enum"] {
            if root.contains_key(key) {
                return Err((format!("/{key}"), format!("`{key}` at the root of a schema")));
            }
        }
        root.entry("properties").or_insert_with(|| json!({}));
    }
    Converter { notes }.schema(&mut converted, &mut String::new(), 0)?;
    Ok(RawJson::from(converted))
}

struct Converter<'a> {
    notes: &'a mut Vec<Note>,
}

impl Converter<'_> {
    fn schema(&mut self, schema: &mut Value, at: &mut String, depth: usize) -> Result<(), (String, String)> {
        let Value::Object(schema) = schema else {
            return Err((at.clone(), "a schema that takes anything".to_owned()));
        };
        if depth > MAX_DEPTH {
            return Err((at.clone(), "the schema is nested too deep".to_owned()));
        }
        if let Some(key) = REFUSED.iter().find(|key| schema.contains_key(**key)) {
            return Err((format!("{at}/{key}"), format!("`{key}`")));
        }
        for key in ANNOTATIONS {
            if schema.remove(key).is_some() && key == "default" {
                self.notes
                    .push((format!("{at}/{key}"), NoteKind::Removed, "`default`".to_owned()));
            }
        }
        if schema
            .get("format")
            .and_then(Value::as_str)
            .is_some_and(|format| !FORMATS.contains(&format))
        {
            let format = schema.remove("format").unwrap_or_default();
            self.notes.push((
                format!("{at}/format"),
                NoteKind::Removed,
                format!("the format {format}"),
            ));
        }
        if let Some(choices) = schema.remove("oneOf") {
            self.notes.push((
                format!("{at}/oneOf"),
                NoteKind::Changed,
                "`oneOf` to `anyOf`".to_owned(),
            ));
            if schema.insert("anyOf".to_owned(), choices).is_some() {
                return Err((format!("{at}/oneOf"), "`oneOf` beside `anyOf`".to_owned()));
            }
        }
        for key in ["$defs", "definitions"] {
            if let Some(Value::Object(definitions)) = schema.get_mut(key) {
                for (name, definition) in definitions {
                    self.inner(definition, at, &[key, name], depth)?;
                }
            }
        }
        if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
            for (index, choice) in choices.iter_mut().enumerate() {
                self.inner(choice, at, &["anyOf", &index.to_string()], depth)?;
            }
        }
        if let Some(items) = schema.get_mut("items") {
            self.inner(items, at, &["items"], depth)?;
        }
        let says_type = ["type", "enum", "const", "anyOf", "$ref"]
            .iter()
            .any(|key| schema.contains_key(*key));
        if !says_type && !schema.contains_key("properties") {
            return Err((at.clone(), "a schema that takes anything".to_owned()));
        }
        if allows_type(schema, "array") && !schema.contains_key("items") {
            return Err((at.clone(), "a list of anything".to_owned()));
        }
        if schema.contains_key("properties") || allows_type(schema, "object") {
            self.object(schema, at, depth)?;
        }
        Ok(())
    }

    /// Converts a schema inside of another one.
    fn inner(
        &mut self,
        schema: &mut Value,
        at: &mut String,
        path: &[&str],
        depth: usize,
    ) -> Result<(), (String, String)> {
        let length = at.len();
        for key in path {
            push(at, key);
        }
        self.schema(schema, at, depth + 1)?;
        at.truncate(length);
        Ok(())
    }

    fn object(
        &mut self,
        schema: &mut Map<String, Value>,
        at: &mut String,
        depth: usize,
    ) -> Result<(), (String, String)> {
        match schema.get("additionalProperties") {
            None if schema.contains_key("properties") => {
                self.notes.push((
                    at.clone(),
                    NoteKind::Changed,
                    "further properties are not taken".to_owned(),
                ));
            }
            Some(Value::Bool(false)) => {}
            _ => return Err((at.clone(), "an object with any properties".to_owned())),
        }
        schema.insert("additionalProperties".to_owned(), Value::Bool(false));
        let required: Vec<String> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| {
                names
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect()
            })
            .unwrap_or_default();
        let Some(Value::Object(properties)) = schema.get_mut("properties") else {
            return Err((at.clone(), "an object with any properties".to_owned()));
        };
        if let Some(missing) = required.iter().find(|name| !properties.contains_key(*name)) {
            return Err((
                format!("{at}/required"),
                format!("`{missing}` is required and not described"),
            ));
        }
        let names: Vec<Value> = properties.keys().map(|name| Value::from(name.as_str())).collect();
        for (name, property) in properties.iter_mut() {
            self.inner(property, at, &["properties", name], depth)?;
            if !required.contains(name) && !takes_null(property) {
                *property = nullable(property.take());
                self.notes.push((
                    format!("{at}/properties/{}", escaped(name)),
                    NoteKind::Changed,
                    "an optional argument to one that may be null".to_owned(),
                ));
            }
        }
        schema.insert("required".to_owned(), Value::Array(names));
        Ok(())
    }
}

/// Returns `true` if a schema names this type.
fn allows_type(schema: &Map<String, Value>, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == wanted,
        Some(Value::Array(names)) => names.iter().any(|name| name == wanted),
        _ => false,
    }
}

/// Returns `true` if a schema is known to take null.
fn takes_null(schema: &Value) -> bool {
    let Value::Object(schema) = schema else {
        return schema.as_bool() == Some(true);
    };
    let by_choice = |key: &str| {
        let choices = schema.get(key).and_then(Value::as_array);
        choices.is_some_and(|choices| choices.iter().any(takes_null))
    };
    allows_type(schema, "null")
        || schema.get("const").is_some_and(Value::is_null)
        || by_choice("anyOf")
        || by_choice("oneOf")
}

/// Returns a schema that also takes null.
fn nullable(mut schema: Value) -> Value {
    let Value::Object(members) = &mut schema else {
        return schema;
    };
    if members.contains_key("$ref") || members.contains_key("const") || !members.contains_key("type") {
        if let Some(Value::Array(choices)) = members.get_mut("anyOf") {
            choices.push(json!({"type": "null"}));
            return schema;
        }
        return json!({"anyOf": [schema, {"type": "null"}]});
    }
    if let Some(Value::Array(values)) = members.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    if let Some(kind) = members.get_mut("type") {
        match kind {
            Value::Array(names) => names.push(Value::from("null")),
            other => *other = json!([other.take(), "null"]),
        }
    }
    schema
}

/// Removes the members that are null although the original schema has them as optional and not as null. Returns `None` if nothing
/// is removed.
pub(super) fn without_nulls(root: &Value, schema: &Value, value: &RawJson) -> Option<RawJson> {
    let schema = resolve(root, schema, 0)?;
    match value.kind() {
        JsonKind::Object => {
            let properties = schema.get("properties")?.as_object()?;
            let required = schema.get("required").and_then(Value::as_array);
            let is_required =
                |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
            let mut has_changed = false;
            let mut members = Vec::new();
            for (name, member) in value.members() {
                let property = properties.get(&*name);
                let is_absent = member.kind() == JsonKind::Null
                    && !is_required(&name)
                    && property.is_some_and(|property| !resolve(root, property, 0).is_some_and(takes_null));
                if is_absent {
                    has_changed = true;
                    continue;
                }
                let inner = property.and_then(|property| without_nulls(root, property, &member));
                has_changed |= inner.is_some();
                members.push((name, inner.unwrap_or(member)));
            }
            let members: Vec<_> = members
                .iter()
                .map(|(name, member)| (&**name, member.clone()))
                .collect();
            has_changed.then(|| RawJson::from_members(&members))
        }
        JsonKind::Array => {
            let items = schema.get("items")?;
            let mut has_changed = false;
            let made: Vec<_> = value
                .items()
                .map(|item| {
                    let inner = without_nulls(root, items, &item);
                    has_changed |= inner.is_some();
                    inner.unwrap_or(item)
                })
                .collect();
            has_changed.then(|| RawJson::from_items(&made))
        }
        _ => None,
    }
}

/// Follows references into the same document.
fn resolve<'a>(root: &'a Value, schema: &'a Value, depth: usize) -> Option<&'a Value> {
    let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
        return Some(schema);
    };
    if depth > MAX_DEPTH {
        return None;
    }
    let target = root.pointer(reference.strip_prefix('#')?)?;
    resolve(root, target, depth + 1)
}
