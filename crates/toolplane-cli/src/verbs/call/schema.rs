//! Types of a schema's properties, as far as the command line needs them.

use std::fmt;

use serde_json::Value;

/// Maximum number of followed references: a schema may refer to itself.
const MAX_REFERENCES: usize = 16;

/// Set of JSON types that a value may have; empty if the schema does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TypeSet(u8);

/// Names of the types, in the order in which a word of the command line is tried for them.
const NAMES: [&str; 7] = [
    "string", "integer", "number", "boolean", "null", "array", "object",
];

impl TypeSet {
    pub(crate) fn has(self, name: &str) -> bool {
        NAMES
            .iter()
            .position(|known| *known == name)
            .is_some_and(|at| self.0 & (1 << at) != 0)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn add(&mut self, name: &str) {
        if let Some(at) = NAMES.iter().position(|known| *known == name) {
            self.0 |= 1 << at;
        }
    }

    /// Returns the types that a schema allows.
    pub(crate) fn for_schema(schema: &Value, root: &Value) -> Self {
        let mut types = Self::default();
        types.collect(schema, root, MAX_REFERENCES);
        types
    }

    fn collect(&mut self, schema: &Value, root: &Value, budget: usize) {
        let Some(budget) = budget.checked_sub(1) else {
            return;
        };
        match schema.get("type") {
            Some(Value::String(name)) => return self.add(name),
            Some(Value::Array(names)) => {
                return names
                    .iter()
                    .filter_map(Value::as_str)
                    .for_each(|name| self.add(name));
            }
            _ => {}
        }
        if let Some(target) = reference(schema, root) {
            self.collect(target, root, budget);
        }
        for keyword in ["anyOf", "oneOf", "allOf"] {
            for branch in schema
                .get(keyword)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                self.collect(branch, root, budget);
            }
        }
        let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
        values
            .chain(schema.get("const"))
            .for_each(|value| self.add(kind(value)));
    }
}

impl fmt::Display for TypeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = NAMES.into_iter().filter(|name| self.has(name)).collect();
        f.write_str(if names.is_empty() { "any" } else { "" })?;
        f.write_str(&names.join(" or "))
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns the target of a reference within the schema.
fn reference<'a>(schema: &Value, root: &'a Value) -> Option<&'a Value> {
    let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
    root.pointer(pointer)
}

/// Returns the schema, or the target of its reference.
pub(crate) fn resolved<'a>(mut schema: &'a Value, root: &'a Value) -> &'a Value {
    for _ in 0..MAX_REFERENCES {
        match reference(schema, root) {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

/// A property of an object's schema.
#[derive(Debug)]
pub(crate) struct Property<'a> {
    pub(crate) name: &'a str,
    /// Allowed values, or the types.
    pub(crate) values: String,
    pub(crate) required: bool,
    pub(crate) description: &'a str,
}

/// Returns the properties of a schema, required ones first.
pub(crate) fn properties(root: &Value) -> Vec<Property<'_>> {
    let schema = resolved(root, root);
    let required = |name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|required| required == name))
    };
    let named = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let mut properties: Vec<Property<'_>> = named
        .map(|(name, property)| Property {
            name,
            values: values(resolved(property, root), root),
            required: required(name),
            description: resolved(property, root)
                .get("description")
                .or_else(|| property.get("description"))
                .and_then(Value::as_str)
                .unwrap_or_default(),
        })
        .collect();
    properties.sort_by_key(|property| !property.required);
    properties
}

/// Maximum number of values that are listed.
const MAX_VALUES: usize = 6;

fn values(schema: &Value, root: &Value) -> String {
    let choices = schema.get("enum").and_then(Value::as_array);
    match choices.filter(|choices| choices.len() <= MAX_VALUES) {
        Some(choices) => {
            let written = choices
                .iter()
                .map(|choice| choice.as_str().map_or(choice.to_string(), str::to_owned));
            written.collect::<Vec<_>>().join(" | ")
        }
        None => TypeSet::for_schema(schema, root).to_string(),
    }
}

/// Returns the schema of one property, if the object's schema has one.
pub(crate) fn property<'a>(root: &'a Value, name: &str) -> Option<&'a Value> {
    let schema = resolved(root, root);
    schema
        .get("properties")
        .and_then(|properties| properties.get(name))
        .or_else(|| schema.get("additionalProperties"))
        .filter(|property| property.is_object())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn types_are_found_wherever_a_schema_says_them() {
        let root = json!({"$defs": {"n": {"type": "integer"}, "loop": {"$ref": "#/$defs/loop"}}});
        for (schema, expected) in [
            (json!({"type": "integer"}), "integer"),
            (json!({"type": ["string", "null"]}), "string or null"),
            (json!({"$ref": "#/$defs/n"}), "integer"),
            (json!({"$ref": "#/$defs/loop"}), "any"),
            (
                json!({"anyOf": [{"type": "boolean"}, {"$ref": "#/$defs/n"}]}),
                "integer or boolean",
            ),
            (json!({"enum": ["a", 1, 1.5]}), "string or integer or number"),
            (json!({"const": null}), "null"),
            (json!({}), "any"),
            (json!(true), "any"),
        ] {
            assert_eq!(
                TypeSet::for_schema(&schema, &root).to_string(),
                expected,
                "{schema}"
            );
        }
    }
}
