use std::ops::{BitAnd, BitOr};

use serde_json::{Map, Value, json};

use super::Definitions;

/// Maximum number of subschemas that are followed in place.
const MAX_DEPTH: usize = 16;

/// Set of JSON types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kinds(u8);

impl Kinds {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const NULL: Self = Self(1);
    pub(crate) const BOOLEAN: Self = Self(2);
    pub(crate) const NUMBER: Self = Self(4);
    pub(crate) const STRING: Self = Self(8);
    pub(crate) const ARRAY: Self = Self(16);
    pub(crate) const OBJECT: Self = Self(32);
    pub(crate) const ALL: Self = Self(63);
    /// Values that have one text.
    pub(crate) const SCALARS: Self = Self(2 | 4 | 8);

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the types that a normalized schema accepts. May contain more, never fewer.
    pub(crate) fn of_schema(schema: &Value, definitions: &Definitions<'_>) -> Self {
        Self::at_depth(schema, definitions, 0)
    }

    fn at_depth(schema: &Value, definitions: &Definitions<'_>, depth: usize) -> Self {
        let Value::Object(keywords) = schema else {
            return if schema == &Value::Bool(false) {
                Self::NONE
            } else {
                Self::ALL
            };
        };
        if depth > MAX_DEPTH {
            return Self::ALL;
        }
        let below = |schema: &Value| Self::at_depth(schema, definitions, depth + 1);
        let mut kinds = stated(keywords);
        if let Some(target) = definitions.referenced(schema) {
            kinds = kinds & below(target);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = keywords.get(keyword) {
                kinds = kinds & branches.iter().map(below).fold(Self::NONE, BitOr::bitor);
            }
        }
        if let Some(Value::Array(parts)) = keywords.get("allOf") {
            kinds = parts.iter().map(below).fold(kinds, BitAnd::bitand);
        }
        kinds
    }

    fn of_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(_) => Self::NUMBER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    fn of_name(name: &str) -> Self {
        match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "number" | "integer" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => Self::NONE,
        }
    }

    /// Returns the names of the types, as `type` writes them.
    fn names(self) -> Vec<&'static str> {
        const NAMES: [(Kinds, &str); 6] = [
            (Kinds::STRING, "string"),
            (Kinds::NUMBER, "number"),
            (Kinds::BOOLEAN, "boolean"),
            (Kinds::ARRAY, "array"),
            (Kinds::OBJECT, "object"),
            (Kinds::NULL, "null"),
        ];
        let named = NAMES.into_iter().filter(|(kind, _)| self.has(*kind));
        named.map(|(_, name)| name).collect()
    }
}

/// Returns the types that `type`, `const` and `enum` allow.
fn stated(keywords: &Map<String, Value>) -> Kinds {
    let mut kinds = match keywords.get("type") {
        Some(Value::String(name)) => Kinds::of_name(name),
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str);
            names.map(Kinds::of_name).fold(Kinds::NONE, BitOr::bitor)
        }
        _ => Kinds::ALL,
    };
    if let Some(constant) = keywords.get("const") {
        kinds = kinds & Kinds::of_value(constant);
    }
    if let Some(Value::Array(values)) = keywords.get("enum") {
        kinds = kinds & values.iter().map(Kinds::of_value).fold(Kinds::NONE, BitOr::bitor);
    }
    kinds
}

impl BitOr for Kinds {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Kinds {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// Returns a schema that accepts only those values of another one that have one of these types. Returns `None` if there are
/// none.
pub(crate) fn restrict(schema: Value, allowed: Kinds, definitions: &Definitions<'_>) -> Option<Value> {
    let kinds = Kinds::of_schema(&schema, definitions);
    let left = kinds & allowed;
    if left.is_empty() {
        return None;
    }
    if left == kinds {
        return Some(schema);
    }
    let Value::Object(mut keywords) = schema else {
        return Some(json!({"type": left.names()}));
    };
    match keywords.get_mut("type") {
        None => {
            let names = match left.names().as_slice() {
                [only] => json!(only),
                several => json!(several),
            };
            keywords.insert("type".to_owned(), names);
        }
        Some(Value::Array(names)) => {
            names.retain(|name| name.as_str().is_some_and(|name| left.has(Kinds::of_name(name))));
        }
        Some(_) => {
            // Other keywords exclude more than the type does: they need no help.
        }
    }
    Some(Value::Object(keywords))
}
