use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::normalize::Normalizer;
use crate::document::Document;

/// Maximum number of schemas that the schema of one tool refers to.
const MAX_DEFINITIONS: usize = 2000;

/// Schemas that a tool's schema refers to, as its `$defs`. References that lead in circles stay references.
#[derive(Debug)]
pub(crate) struct Definitions<'d> {
    document: &'d Document,
    /// Names by the references of the document.
    names: BTreeMap<String, String>,
    /// Number of names that were made from each last part of a reference.
    n_names: BTreeMap<String, usize>,
    schemas: Map<String, Value>,
}

impl<'d> Definitions<'d> {
    pub(crate) fn new(document: &'d Document) -> Self {
        Self {
            document,
            names: BTreeMap::new(),
            n_names: BTreeMap::new(),
            schemas: Map::new(),
        }
    }

    /// Normalizes a schema, and adds all schemas that it refers to.
    pub(crate) fn add(&mut self, schema: &Value) -> Result<Value, String> {
        let mut pending = Vec::new();
        let normalized = self.normalize(schema, &mut pending)?;
        while let Some((reference, name)) = pending.pop() {
            if self.names.len() > MAX_DEFINITIONS {
                return Err(format!("it refers to more than {MAX_DEFINITIONS} schemas"));
            }
            let target = self.document.target(&reference)?;
            let definition = self.normalize(target, &mut pending)?;
            self.schemas.insert(name, definition);
        }
        Ok(normalized)
    }

    fn normalize(&mut self, schema: &Value, pending: &mut Vec<(String, String)>) -> Result<Value, String> {
        let (names, n_names) = (&mut self.names, &mut self.n_names);
        let mut normalizer = Normalizer {
            document: self.document,
            name_of: &mut |reference| match names.get(reference) {
                Some(name) => name.clone(),
                None => {
                    let name = free_name(reference, n_names);
                    names.insert(reference.to_owned(), name.clone());
                    pending.push((reference.to_owned(), name.clone()));
                    name
                }
            },
        };
        normalizer.schema(schema)
    }

    /// Returns the schema that a normalized schema is or refers to, at most 32 references away.
    pub(crate) fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let mut schema = schema;
        for _ in 0..32 {
            let Some(next) = self.referenced(schema) else {
                break;
            };
            schema = next;
        }
        schema
    }

    /// Returns the definition to which a normalized schema refers.
    pub(crate) fn referenced(&self, schema: &Value) -> Option<&Value> {
        let name = schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?;
        self.schemas.get(name)
    }

    /// Returns the definitions that a schema needs.
    pub(crate) fn used_by(&self, root: &Value) -> Map<String, Value> {
        let mut used = BTreeSet::new();
        let mut pending = vec![root];
        while let Some(value) = pending.pop() {
            match value {
                Value::Object(members) => {
                    let name = value.get("$ref").and_then(Value::as_str);
                    let name = name.and_then(|reference| reference.strip_prefix("#/$defs/"));
                    if let Some((name, schema)) = name.and_then(|name| self.schemas.get_key_value(name))
                        && used.insert(name.as_str())
                    {
                        pending.push(schema);
                    }
                    pending.extend(members.values());
                }
                Value::Array(items) => pending.extend(items),
                _ => {}
            }
        }
        let members = self
            .schemas
            .iter()
            .filter(|(name, _)| used.contains(name.as_str()));
        members
            .map(|(name, schema)| (name.clone(), schema.clone()))
            .collect()
    }
}

/// Returns a new name for a reference, from its last part. The number after `:` keeps names apart, since
/// no name from a reference has that character.
fn free_name(reference: &str, n_names: &mut BTreeMap<String, usize>) -> String {
    let last = reference.rsplit('/').next().unwrap_or_default();
    let name: String = last
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "_.-".contains(c) {
                c
            } else {
                '_'
            }
        })
        .take(100)
        .collect();
    let name = if name.is_empty() {
        "schema".to_owned()
    } else {
        name
    };
    let n_uses = n_names.entry(name.clone()).or_default();
    *n_uses += 1;
    match *n_uses {
        1 => name,
        number => format!("{name}:{number}"),
    }
}
