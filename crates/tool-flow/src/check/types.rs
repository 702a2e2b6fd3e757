//! Types of values, as far as JSON Schemas tell them.

use serde_json::Value;

use tool_mapping::PathSegment;

/// Types of JSON, as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Types(u8);

/// Names of types, in the order of their bits. `integer` comes with `number`, of which it is a part.
const NAMES: [&str; 7] = [
    "null", "boolean", "object", "array", "string", "number", "integer",
];
/// Maximum number of references that are followed.
const MAX_REFERENCES: usize = 16;

impl Types {
    /// Any type.
    pub(crate) const ANY: Self = Self(0x7f);

    /// Returns the type of a value.
    pub(crate) fn of_value(value: &Value) -> Self {
        Self::named(match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Object(_) => "object",
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() == 0.0) => "integer",
            Value::Number(_) => "number",
        })
    }

    /// Returns the types that a schema allows.
    pub(crate) fn of_schema(schema: &Value) -> Self {
        if let Some(value) = schema.get("const") {
            return Self::of_value(value);
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            return values.iter().map(Self::of_value).fold(Self(0), Self::or);
        }
        match schema.get("type") {
            Some(Value::String(name)) => Self::allowed(name),
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str);
                names.map(Self::allowed).fold(Self(0), Self::or)
            }
            _ => Self::ANY,
        }
    }

    /// Returns the types of values that a schema allows with this word.
    fn allowed(name: &str) -> Self {
        match name {
            "number" => Self::named("number").or(Self::named("integer")),
            name if NAMES.contains(&name) => Self::named(name),
            _ => Self::ANY,
        }
    }

    fn named(name: &str) -> Self {
        let bit = NAMES.iter().position(|known| *known == name);
        Self(bit.map_or(0, |bit| 1 << bit))
    }

    fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns `true` if no value has one of these types and one of the others. A number may be a whole one.
    pub(crate) fn excludes(self, other: Self) -> bool {
        let wider = |types: Self| {
            let number = Self::named("number");
            if types.0 & number.0 == 0 {
                types
            } else {
                types.or(Self::named("integer"))
            }
        };
        wider(self).0 & wider(other).0 == 0
    }
}

impl std::fmt::Display for Types {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_number = self.0 & Self::named("number").0 != 0;
        let names = NAMES.iter().enumerate();
        let names =
            names.filter(|(bit, name)| self.0 & (1 << bit) != 0 && !(is_number && **name == "integer"));
        let names: Vec<_> = names.map(|(_, name)| *name).collect();
        f.write_str(&names.join(" or "))
    }
}

/// Statement of a schema about a part of the values that it describes.
#[derive(Debug, PartialEq)]
pub(crate) enum PartOf<'a> {
    /// This schema describes the part.
    Described(&'a Value),
    /// Nothing is said about it.
    Unknown,
    /// The schema lists members, and this is none of them. Further ones are allowed.
    Unlisted,
    /// No value has such a part.
    Impossible,
}

/// Returns what a schema says about the part at this path.
pub(crate) fn part_of<'a>(root: &'a Value, path: &[PathSegment]) -> PartOf<'a> {
    let mut schema = root;
    for segment in path {
        let Some(settled) = settled(root, schema) else {
            return PartOf::Unknown;
        };
        let next = match segment {
            PathSegment::Member(key) if key.parse::<usize>().is_err() => member(settled, key),
            PathSegment::Member(_) => PartOf::Unknown,
            PathSegment::Item(index) => item(settled, *index),
        };
        match next {
            PartOf::Described(next) => schema = next,
            other => return other,
        }
    }
    match settled(root, schema) {
        Some(schema) => PartOf::Described(schema),
        None => PartOf::Unknown,
    }
}

/// Follows the references of a schema. Returns `None` for a schema that combines others.
fn settled<'a>(root: &'a Value, mut schema: &'a Value) -> Option<&'a Value> {
    for _ in 0..MAX_REFERENCES {
        let combines = ["anyOf", "oneOf", "allOf", "if", "not", "$dynamicRef"];
        if combines.iter().any(|keyword| schema.get(keyword).is_some()) {
            return None;
        }
        match schema.get("$ref").and_then(Value::as_str) {
            Some("#") => schema = root,
            Some(reference) => schema = root.pointer(reference.strip_prefix('#')?)?,
            None => return schema.is_object().then_some(schema),
        }
    }
    None
}

fn member<'a>(schema: &'a Value, key: &str) -> PartOf<'a> {
    if Types::of_schema(schema).excludes(Types::named("object")) {
        return PartOf::Impossible;
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return PartOf::Unknown;
    };
    if let Some(property) = properties.get(key) {
        return PartOf::Described(property);
    }
    if schema.get("patternProperties").is_some() {
        return PartOf::Unknown;
    }
    match schema.get("additionalProperties") {
        Some(Value::Bool(false)) => PartOf::Impossible,
        Some(Value::Object(_)) => PartOf::Described(&schema["additionalProperties"]),
        _ => PartOf::Unlisted,
    }
}

fn item(schema: &Value, index: usize) -> PartOf<'_> {
    if Types::of_schema(schema).excludes(Types::named("array")) {
        return PartOf::Impossible;
    }
    let prefix = schema.get("prefixItems").and_then(Value::as_array);
    if let Some(item) = prefix.and_then(|prefix| prefix.get(index)) {
        return PartOf::Described(item);
    }
    match schema.get("items") {
        Some(Value::Bool(false)) => PartOf::Impossible,
        Some(items @ Value::Object(_)) => PartOf::Described(items),
        _ => PartOf::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_compared() {
        let types = |schema: Value| Types::of_schema(&schema);
        assert!(types(json!({"type": "string"})).excludes(types(json!({"type": "integer"}))));
        assert!(!types(json!({"type": "number"})).excludes(types(json!({"type": "integer"}))));
        assert!(!types(json!({"type": "integer"})).excludes(Types::of_value(&json!(3.0))));
        assert!(types(json!({"enum": ["a", null]})).excludes(types(json!({"type": "object"}))));
        assert!(!types(json!({})).excludes(types(json!({"type": "object"}))));
        assert_eq!(
            types(json!({"type": ["number", "null"]})).to_string(),
            "null or number"
        );
    }

    #[test]
    fn parts_are_found() {
        let schema = json!({
            "type": "object",
            "properties": {
                "urls": {"type": "array", "items": {"$ref": "#/$defs/url"}},
                "closed": {"type": "object", "properties": {"a": {}}, "additionalProperties": false},
                "mixed": {"anyOf": [{"type": "object"}, {"type": "null"}]},
            },
            "$defs": {"url": {"type": "string"}},
        });
        let at = |text: &str| {
            let reference = tool_mapping::ValueReference::parse(text).expect("it is one");
            reference.path
        };
        assert_eq!(
            part_of(&schema, &at("input.urls[3]")),
            PartOf::Described(&json!({"type": "string"}))
        );
        assert_eq!(part_of(&schema, &at("input.urls.length")), PartOf::Impossible);
        assert_eq!(part_of(&schema, &at("input.other")), PartOf::Unlisted);
        assert_eq!(part_of(&schema, &at("input.closed.b")), PartOf::Impossible);
        assert_eq!(part_of(&schema, &at("input.mixed.b")), PartOf::Unknown);
        assert_eq!(part_of(&schema, &at("input.urls[0].b")), PartOf::Impossible);
    }
}
