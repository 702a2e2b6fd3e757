use serde_json::{Map, Value, json};

use crate::document::Document;

/// Keywords whose value is a schema.
const ONE: [&str; 12] = [
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "unevaluatedItems",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
    "additionalItems",
];
/// Keywords whose value is a list of schemas.
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value is a map of schemas.
const MAPS: [&str; 3] = ["properties", "patternProperties", "dependentSchemas"];
/// Keywords that say nothing about arguments, or would change the meaning of references.
const DROPPED: [&str; 15] = [
    "xml",
    "discriminator",
    "externalDocs",
    "$schema",
    "$id",
    "id",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$vocabulary",
    "$defs",
    "definitions",
    "nullable",
    "readOnly",
    "writeOnly",
];

/// Rewrites schemas of a document as JSON Schema 2020-12.
pub(super) struct Normalizer<'a, 'd> {
    pub(super) document: &'d Document,
    /// Returns the name of the definition for a reference.
    pub(super) name_of: &'a mut dyn FnMut(&str) -> String,
}

impl Normalizer<'_, '_> {
    /// Rewrites a schema and its subschemas.
    pub(super) fn schema(&mut self, schema: &Value) -> Result<Value, String> {
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(_) => return Ok(schema.clone()),
            _ => {
                return Err(format!(
                    "a schema is {}, neither a map nor a boolean",
                    described(schema)
                ));
            }
        };
        let mut normalized = Map::new();
        if let Some(reference) = members.get("$ref") {
            let reference = reference.as_str().ok_or("a `$ref` is not a text")?;
            self.document.target(reference)?;
            let name = (self.name_of)(reference);
            normalized.insert("$ref".to_owned(), json!(format!("#/$defs/{name}")));
            if !self.document.version.has_ref_siblings() {
                if let Some(description) = members.get("description") {
                    normalized.insert("description".to_owned(), description.clone());
                }
                return Ok(Value::Object(normalized));
            }
        }
        for (keyword, value) in members {
            self.keyword(keyword, value, members, &mut normalized)?;
        }
        bounds(&mut normalized);
        required(&mut normalized, members, self.document);
        let is_nullable = ["nullable", "x-nullable"]
            .iter()
            .any(|keyword| members.get(*keyword) == Some(&Value::Bool(true)));
        Ok(if is_nullable {
            nullable(normalized)
        } else {
            Value::Object(normalized)
        })
    }

    fn keyword(
        &mut self,
        keyword: &str,
        value: &Value,
        siblings: &Map<String, Value>,
        normalized: &mut Map<String, Value>,
    ) -> Result<(), String> {
        if keyword == "$ref" || DROPPED.contains(&keyword) || keyword.starts_with("x-") {
            return Ok(());
        }
        if matches!(keyword, "$dynamicRef" | "$recursiveRef") {
            return Err(format!("its schema uses `{keyword}`, which is not supported"));
        }
        match (keyword, value) {
            ("example", example) => {
                if !siblings.contains_key("examples") {
                    normalized.insert("examples".to_owned(), json!([example]));
                }
            }
            // `examples` of OpenAPI's own objects is a map.
            ("examples", examples) if !examples.is_array() => {}
            ("type", Value::String(kind)) if kind == "file" => {
                normalized.insert("type".to_owned(), json!("string"));
            }
            ("items", Value::Array(items)) => {
                let items = items
                    .iter()
                    .map(|item| self.schema(item))
                    .collect::<Result<_, _>>()?;
                normalized.insert("prefixItems".to_owned(), Value::Array(items));
            }
            (_, Value::Object(_) | Value::Bool(_)) if ONE.contains(&keyword) => {
                let keyword = match (keyword, siblings.get("items")) {
                    ("additionalItems", Some(Value::Array(_))) => "items",
                    ("additionalItems", _) => return Ok(()),
                    (keyword, _) => keyword,
                };
                normalized.insert(keyword.to_owned(), self.schema(value)?);
            }
            (_, Value::Array(list)) if LISTS.contains(&keyword) => {
                let list = list
                    .iter()
                    .map(|item| self.schema(item))
                    .collect::<Result<_, _>>()?;
                normalized.insert(keyword.to_owned(), Value::Array(list));
            }
            (_, Value::Object(map)) if MAPS.contains(&keyword) => {
                let mut schemas = Map::new();
                for (name, schema) in map {
                    if keyword == "properties" && is_read_only(self.document, schema) {
                        continue;
                    }
                    schemas.insert(name.clone(), self.schema(schema)?);
                }
                normalized.insert(keyword.to_owned(), Value::Object(schemas));
            }
            // Generators write `required: true` into properties.
            ("required", Value::Bool(_)) => {}
            _ => {
                normalized.insert(keyword.to_owned(), value.clone());
            }
        }
        Ok(())
    }
}

/// Returns `true` for a property that requests do not have.
fn is_read_only(document: &Document, schema: &Value) -> bool {
    let marked = |schema: &Value| schema.get("readOnly") == Some(&Value::Bool(true));
    marked(schema) || document.resolve(schema).is_ok_and(marked)
}

/// Removes the names of read-only properties from `required`.
fn required(normalized: &mut Map<String, Value>, members: &Map<String, Value>, document: &Document) {
    let properties = members.get("properties").and_then(Value::as_object);
    if let Some(Value::Array(names)) = normalized.get_mut("required") {
        names.retain(|name| {
            let property = name.as_str().and_then(|name| properties?.get(name));
            property.is_none_or(|property| !is_read_only(document, property))
        });
    }
}

/// Rewrites `exclusiveMinimum: true` next to `minimum`, as drafts before 6 write it.
fn bounds(normalized: &mut Map<String, Value>) {
    for (exclusive, inclusive) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        let Some(Value::Bool(is_exclusive)) = normalized.get(exclusive) else {
            continue;
        };
        let bound = match is_exclusive {
            true => take(normalized, inclusive),
            false => None,
        };
        take(normalized, exclusive);
        if let Some(bound) = bound {
            normalized.insert(exclusive.to_owned(), bound);
        }
    }
}

/// Removes a member, and keeps the order of the others.
fn take(members: &mut Map<String, Value>, key: &str) -> Option<Value> {
    let value = members.get(key).cloned();
    members.retain(|name, _| name != key);
    value
}

/// Adds null to the values that a schema accepts.
fn nullable(mut schema: Map<String, Value>) -> Value {
    let types = match schema.get("type") {
        Some(Value::String(one)) => vec![json!(one)],
        Some(Value::Array(many)) => many.clone(),
        // Without a type, other keywords may exclude null.
        _ if schema.is_empty() => return Value::Object(schema),
        _ => {
            let annotations = ["description", "title"].map(|key| (key, take(&mut schema, key)));
            let mut either = json!({"anyOf": [Value::Object(schema), {"type": "null"}]});
            for (key, annotation) in annotations {
                if let Some(annotation) = annotation {
                    either[key] = annotation;
                }
            }
            return either;
        }
    };
    let mut types = types;
    if !types.contains(&json!("null")) {
        types.push(json!("null"));
    }
    schema.insert("type".to_owned(), Value::Array(types));
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    let constrains = ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "const"];
    if constrains.iter().any(|keyword| schema.contains_key(*keyword)) {
        return json!({"anyOf": [Value::Object(schema), {"type": "null"}]});
    }
    Value::Object(schema)
}

fn described(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Array(_) => "a list",
        Value::String(_) => "a text",
        _ => "a number",
    }
}
