//! The reference of the configuration, from its JSON Schema.

use std::{collections::BTreeSet, fmt::Write};

use serde_json::{Map, Value};

use super::cli::cell;
use crate::verbs::{call::schema::Types, schema};

const DEFINITIONS: &str = "#/$defs/";

pub(super) fn page() -> String {
    let schema: Value = schema::schema().to().unwrap_or_default();
    let mut page = "# Configuration\n\nEvery key of a configuration file. `toolplane schema` prints the same for editors, \
                    as a JSON Schema.\n\n"
        .to_owned();
    let mut reader = Reader {
        root: &schema,
        page: &mut page,
        waiting: Vec::new(),
        seen: BTreeSet::new(),
    };
    // The short form and what it leads to come first: it is what most files are written in.
    for part in [schema.get("else").unwrap_or(&Value::Null), &schema] {
        reader.wait_for_all(part);
        while let Some(name) = reader.next() {
            reader.definition(&name);
        }
    }
    page
}

struct Reader<'a> {
    root: &'a Value,
    page: &'a mut String,
    /// Definitions that were referred to and are not written yet.
    waiting: Vec<String>,
    seen: BTreeSet<String>,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<String> {
        (!self.waiting.is_empty()).then(|| self.waiting.remove(0))
    }

    /// Notes every definition that a schema refers to.
    fn wait_for_all(&mut self, schema: &Value) {
        match schema {
            Value::Object(members) => {
                for (key, value) in members {
                    match value
                        .as_str()
                        .filter(|_| key == "$ref")
                        .and_then(|at| at.strip_prefix(DEFINITIONS))
                    {
                        Some(name) if self.seen.insert(name.to_owned()) => self.waiting.push(name.to_owned()),
                        Some(_) => {}
                        None if key == "$defs" => {}
                        None => self.wait_for_all(value),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.wait_for_all(item)),
            _ => {}
        }
    }

    fn definition(&mut self, name: &str) {
        let Some(schema) = self
            .root
            .get("$defs")
            .and_then(|definitions| definitions.get(name))
        else {
            return;
        };
        let _ = writeln!(self.page, "## {name}\n");
        if let Some(text) = description(schema) {
            let _ = writeln!(self.page, "{text}\n");
        }
        let mut tables = Vec::new();
        collect(schema, &mut tables);
        for (condition, properties, required) in tables {
            if let Some(condition) = condition {
                let _ = writeln!(self.page, "With {condition}:\n");
            }
            self.table(properties, &required);
        }
        let schema = schema.clone();
        self.wait_for_all(&schema);
    }

    fn table(&mut self, properties: &Map<String, Value>, required: &[&str]) {
        self.page.push_str("| key | type | meaning |\n|---|---|---|\n");
        for (key, property) in properties {
            let mark = if required.contains(&key.as_str()) {
                " (required)"
            } else {
                ""
            };
            let meaning = description(property).unwrap_or_default();
            let kind = kind(property, self.root);
            let _ = writeln!(self.page, "| `{key}`{mark} | {kind} | {} |", cell(&meaning));
        }
        self.page.push('\n');
    }
}

type Table<'a> = (Option<String>, &'a Map<String, Value>, Vec<&'a str>);

/// The tables of properties in a schema: its own, and those of its branches with what makes each of them hold.
fn collect<'a>(schema: &'a Value, tables: &mut Vec<Table<'a>>) {
    let table = |schema: &'a Value, condition| {
        let properties = schema.get("properties").and_then(Value::as_object)?;
        let required = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        Some((
            condition,
            properties,
            required.filter_map(Value::as_str).collect(),
        ))
    };
    tables.extend(table(schema, None));
    for keyword in ["oneOf", "anyOf", "allOf"] {
        for branch in schema
            .get(keyword)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let (condition, content) = match (branch.get("if"), branch.get("then")) {
                (Some(condition), Some(then)) => (constant(condition), then),
                _ => (constant(branch), branch),
            };
            tables.extend(table(content, condition));
        }
    }
}

/// The member that a schema asks to have one certain value, such as `kind: http`.
fn constant(schema: &Value) -> Option<String> {
    let properties = schema.get("properties")?.as_object()?;
    properties
        .iter()
        .find_map(|(key, property)| Some(format!("`{key}: {}`", property.get("const")?.as_str()?)))
}

fn description(schema: &Value) -> Option<String> {
    schema
        .get("description")
        .and_then(Value::as_str)
        .map(|text| text.replace('\n', " "))
}

/// A schema's type in words, with a link to its definition.
fn kind(schema: &Value, root: &Value) -> String {
    if let Some(name) = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|at| at.strip_prefix(DEFINITIONS))
    {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<String> = values
            .iter()
            .map(|value| format!("`{}`", value.as_str().unwrap_or_default()))
            .collect();
        return values.join(", ");
    }
    if let Some(values) = schema
        .get("additionalProperties")
        .filter(|values| values.is_object())
    {
        return format!("map of {}", kind(values, root));
    }
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        return format!("list of {}", kind(items, root));
    }
    Types::of(schema, root).to_string()
}
