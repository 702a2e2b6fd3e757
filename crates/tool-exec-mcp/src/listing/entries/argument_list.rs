//! Arguments as a list, in the form of Docker's registry of MCP servers.

use raw_json::{JsonKind, RawJson};
use serde_json::{Map, Value, json};

/// Returns the schema that a definition's `arguments: [{name, type, desc, optional, items}]` describes. Returns `None` if it
/// has no such list.
pub(super) fn argument_list_schema(definition: &RawJson) -> Option<RawJson> {
    let list = definition
        .get("arguments")
        .filter(|list| list.kind() == JsonKind::Array)?;
    let list: Vec<Value> = list.to().ok()?;
    let mut properties = Map::new();
    let mut required = Vec::new();
    for argument in &list {
        let name = argument.get("name")?.as_str()?;
        let mut property = Map::new();
        for (key, keyword) in [
            ("type", "type"),
            ("desc", "description"),
            ("description", "description"),
            ("items", "items"),
            ("enum", "enum"),
            ("default", "default"),
        ] {
            if let Some(value) = argument.get(key).filter(|value| !value.is_null()) {
                property.insert(keyword.to_owned(), value.clone());
            }
        }
        let is_optional = argument.get("optional") == Some(&Value::Bool(true))
            || argument.get("required") == Some(&Value::Bool(false));
        if !is_optional && !properties.contains_key(name) {
            required.push(json!(name));
        }
        properties.insert(name.to_owned(), Value::Object(property));
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = Value::Array(required);
    }
    Some(RawJson::from(schema))
}
