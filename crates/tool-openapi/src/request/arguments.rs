use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// Arguments of a tool, in their order.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    properties: Map<String, Value>,
    required: Vec<Value>,
    /// Names that the members of the body have.
    reserved: BTreeSet<String>,
}

impl Arguments {
    /// Keeps names for the members of the body, which are sent under their own names.
    pub(super) fn reserve(&mut self, names: impl IntoIterator<Item = String>) {
        self.reserved.extend(names);
    }

    /// Adds an argument for a parameter, and returns the name under which templates find it.
    pub(super) fn add(&mut self, parameter: &str, place: &str, schema: Value, is_required: bool) -> String {
        let wanted = argument_name(parameter);
        let candidates = [wanted.clone(), format!("{wanted}_{place}")];
        let numbered = (2..).map(|number| format!("{wanted}_{place}_{number}"));
        let name = candidates
            .into_iter()
            .chain(numbered)
            .find(|name| !self.reserved.contains(name) && !self.properties.contains_key(name))
            .unwrap_or(wanted);
        self.put(&name, schema, is_required);
        name
    }

    /// Adds an argument under exactly this name.
    pub(super) fn put(&mut self, name: &str, schema: Value, is_required: bool) {
        self.properties.insert(name.to_owned(), schema);
        if is_required {
            self.required.push(json!(name));
        }
    }

    /// Returns the schema of all arguments.
    pub(super) fn into_schema(self, additional: Option<Value>) -> Map<String, Value> {
        let mut schema = Map::from_iter([("type".to_owned(), json!("object"))]);
        schema.insert("properties".to_owned(), Value::Object(self.properties));
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), Value::Array(self.required));
        }
        if let Some(additional) = additional {
            schema.insert("additionalProperties".to_owned(), additional);
        }
        schema
    }
}

/// Returns the name of a parameter with the characters that names in templates have.
fn argument_name(parameter: &str) -> String {
    let mut name = String::new();
    for c in parameter.chars() {
        if c.is_ascii_alphanumeric() || c == '-' || c == '_' {
            name.push(c);
        } else if !name.ends_with('_') {
            name.push('_');
        }
    }
    let trimmed = match parameter.starts_with('_') {
        true => name.trim_end_matches('_'),
        false => name.trim_matches('_'),
    };
    match trimmed.chars().next() {
        None => "parameter".to_owned(),
        Some(first) if first.is_ascii_alphabetic() || first == '_' => trimmed.to_owned(),
        Some(_) => format!("_{trimmed}"),
    }
}
