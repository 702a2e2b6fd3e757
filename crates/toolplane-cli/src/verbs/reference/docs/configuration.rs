//! Reference page of the configuration, generated from its JSON Schema.

use std::{collections::BTreeSet, fmt::Write};

use serde_json::{Map, Value};
use toolplane::RawJson;

use super::cli::cell;
use crate::verbs::call::schema::TypeSet;

const DEFINITIONS: &str = "#/$defs/";

/// Writes every definition of the schema as a section, in the order of reference.
pub(super) fn page(schema: &RawJson) -> String {
    let schema: Value = schema.to().unwrap_or_default();
    let mut writer = PageWriter {
        root: &schema,
        page: "# Configuration\n\nEvery key of a configuration file. `toolplane schema` prints the same for editors, as \
               a JSON Schema.\n\n"
            .to_owned(),
        queue: Vec::new(),
        seen: BTreeSet::new(),
    };
    // The short form comes first, with all it refers to: most files are written in it.
    for part in [schema.get("else").unwrap_or(&Value::Null), &schema] {
        writer.queue_references(part);
        while !writer.queue.is_empty() {
            let name = writer.queue.remove(0);
            writer.section(&name);
        }
    }
    writer.page
}

struct PageWriter<'a> {
    root: &'a Value,
    page: String,
    /// Referenced definitions that are not written yet.
    queue: Vec<String>,
    seen: BTreeSet<String>,
}

impl<'a> PageWriter<'a> {
    /// Queues every definition that a schema refers to.
    fn queue_references(&mut self, schema: &Value) {
        match schema {
            Value::Object(members) => {
                for (key, value) in members.iter().filter(|(key, _)| *key != "$defs") {
                    match value.as_str().filter(|_| key == "$ref").and_then(definition) {
                        Some(name) if self.seen.insert(name.to_owned()) => self.queue.push(name.to_owned()),
                        _ => self.queue_references(value),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.queue_references(item)),
            _ => {}
        }
    }

    fn section(&mut self, name: &str) {
        let root: &'a Value = self.root;
        let Some(schema) = root.get("$defs").and_then(|definitions| definitions.get(name)) else {
            return;
        };
        let _ = writeln!(self.page, "## {}\n", title(name));
        if let Some(text) = description(schema) {
            let _ = writeln!(self.page, "{text}\n");
        }
        match schema.get("properties").and_then(Value::as_object) {
            Some(properties) => self.table(properties, schema),
            None => {
                let _ = writeln!(self.page, "Written as {}.\n", kind(schema, root));
            }
        }
        let choices = references(schema, &["oneOf", "anyOf"]);
        if !choices.is_empty() {
            let _ = writeln!(self.page, "One of {}.\n", choices.join(", "));
        }
        self.queue_references(schema);
    }

    fn table(&mut self, properties: &Map<String, Value>, schema: &Value) {
        let is_required = |key: &str| {
            let required = schema.get("required").and_then(Value::as_array);
            required.is_some_and(|required| required.iter().any(|name| name == key))
        };
        let is_other = |property: &Value| property.get("deprecated") == Some(&Value::Bool(true));
        self.page.push_str("| key | value | meaning |\n|---|---|---|\n");
        for (key, property) in properties.iter().filter(|(_, property)| !is_other(property)) {
            let mark = if is_required(key) { " (required)" } else { "" };
            let meaning = description(property).unwrap_or_default();
            let value = kind(property, self.root);
            let _ = writeln!(self.page, "| `{key}`{mark} | {value} | {} |", cell(&meaning));
        }
        self.page.push('\n');
        let others = properties.iter().filter(|(_, property)| is_other(property));
        let others: Vec<String> = others
            .map(|(key, property)| other_spelling(key, property))
            .collect();
        if !others.is_empty() {
            let _ = writeln!(
                self.page,
                "Other spellings that are accepted: {}.\n",
                others.join(", ")
            );
        }
    }
}

/// Describes a key that is an alias of another one, which its description names.
fn other_spelling(key: &str, property: &Value) -> String {
    let text = description(property).unwrap_or_default();
    match text.split('`').nth(1) {
        Some(ours) => format!("`{key}` for `{ours}`"),
        None => format!("`{key}`"),
    }
}

fn definition(reference: &str) -> Option<&str> {
    reference.strip_prefix(DEFINITIONS)
}

/// Returns links to the definitions that a schema's branches refer to.
fn references(schema: &Value, keywords: &[&str]) -> Vec<String> {
    let branches = keywords
        .iter()
        .filter_map(|keyword| schema.get(*keyword)?.as_array())
        .flatten();
    let names = branches.filter_map(|branch| definition(branch.get("$ref")?.as_str()?));
    names.map(link).collect()
}

/// Returns the heading of a definition: `executor.http` is `Executor http`.
fn title(name: &str) -> String {
    let words = name.replace(['.', '_'], " ");
    let mut characters = words.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}

fn link(name: &str) -> String {
    let title = title(name);
    let anchor = title.to_lowercase().replace(' ', "-");
    format!("[{title}](#{anchor})")
}

fn description(schema: &Value) -> Option<String> {
    let text = schema.get("description").and_then(Value::as_str)?;
    Some(text.replace('\n', " "))
}

/// Describes the type of a value, with a link to its definition if it has one.
fn kind(schema: &Value, root: &Value) -> String {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(definition) {
        return link(name);
    }
    if let Some(value) = schema.get("const") {
        return format!("`{}`", plain(value));
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<String> = values.iter().map(|value| format!("`{}`", plain(value))).collect();
        return values.join(", ");
    }
    if let Some(values) = schema
        .get("additionalProperties")
        .filter(|values| values.is_object())
    {
        return format!("map of {}", kind(values, root));
    }
    let is_list = schema.get("type").is_none_or(|kind| kind == "array");
    if let Some(items) = schema.get("items").filter(|items| is_list && items.is_object()) {
        return format!("list of {}", kind(items, root));
    }
    let links = references(schema, &["anyOf", "oneOf", "allOf"]);
    if !links.is_empty() {
        return links.join(" or ");
    }
    constants(schema).unwrap_or_else(|| types(schema, root))
}

/// Returns the values of a choice written as branches, each with its own description.
fn constants(schema: &Value) -> Option<String> {
    let branches = schema.get("oneOf")?.as_array()?;
    let values = branches
        .iter()
        .map(|branch| Some(format!("`{}`", plain(branch.get("const")?))));
    values.collect::<Option<Vec<_>>>().map(|values| values.join(", "))
}

fn types(schema: &Value, root: &Value) -> String {
    let types = TypeSet::for_schema(schema, root).to_string();
    // Every optional value may be null: not worth mentioning.
    types
        .replace(" or null", "")
        .replace("null or ", "")
        .replace("string", "text")
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use toolplane::manifest::config_schema;

    use super::*;

    #[test]
    fn executors_have_sections_of_their_own() {
        let http = r##"{"type": "object", "description": "The settings.", "properties": {
            "url": {"type": ["string", "null"], "description": "The address."},
            "request": {"anyOf": [{"$ref": "#/$defs/Mapping"}, {"type": "null"}]},
            "redirects": {"$ref": "#/$defs/Redirects"}},
            "$defs": {"Mapping": {"type": "object", "properties": {"query": {"type": "object", "additionalProperties": {"type": "string"}}}},
                "Redirects": {"oneOf": [{"const": "none", "description": "None."}, {"const": "same_origin"}]}}}"##;
        let page = page(&config_schema(
            &[("http", RawJson::parse(http).unwrap())],
            toolplane::sections(),
        ));
        let section = |title: &str| {
            let (_, rest) = page
                .split_once(&format!("\n## {title}\n"))
                .unwrap_or_else(|| panic!("{title}: {page}"));
            rest.split("\n## ").next().unwrap_or_default().trim().to_owned()
        };
        assert!(section("Executor").contains("One of [Executor http](#executor-http)."));
        let settings = section("Executor http");
        for row in [
            "| `url` | text | The address. |",
            "| `request` | [Http Mapping](#http-mapping) |  |",
            "| `redirects` | [Http Redirects](#http-redirects) |  |",
            "| `kind` (required) | `http` |  |",
        ] {
            assert!(settings.contains(row), "{row}: {settings}");
        }
        assert!(section("Http Mapping").contains("| `query` | map of text |  |"));
        assert!(section("Http Redirects").contains("Written as `none`, `same_origin`."));
    }

    #[test]
    fn other_spellings_are_apart() {
        let page = page(&config_schema(&[], toolplane::sections()));
        assert!(page.contains("`inputSchema` for `input_schema`"), "{page}");
        assert!(!page.contains("| `inputSchema` |"));
    }
}
