//! Subschemas of one document: references between them, and the values that they accept.

use std::cell::{Cell, OnceCell};

use raw_json::{JsonKind, RawJson};
use serde_json::{Map, Value};

use crate::{
    budget::{BELOW, BELOW_LISTS, BELOW_MAPS, DEFINITIONS, IN_PLACE, IN_PLACE_LISTS, IN_PLACE_MAPS},
    reference::{Target, anchors, resolve},
};

/// Maximum number of subschemas that are followed for one value: references and combinations.
pub(crate) const MAX_IN_PLACE: usize = 32;

/// Schema whose subschemas are visited within a budget of steps.
pub(crate) struct Document<'a> {
    root: &'a Value,
    n_steps_left: Cell<u64>,
    /// Anchors of subschemas, collected when the first reference by name is followed.
    anchors: OnceCell<Vec<(&'a str, &'a Value)>>,
}

impl<'a> Document<'a> {
    pub(crate) fn new(root: &'a Value, n_steps: u64) -> Self {
        Self {
            root,
            n_steps_left: Cell::new(n_steps),
            anchors: OnceCell::new(),
        }
    }

    /// Takes a step from the budget; `false` if none was left.
    pub(crate) fn take_step(&self) -> bool {
        let left = self.n_steps_left.get();
        self.n_steps_left.set(left.saturating_sub(1));
        left > 0
    }

    /// Returns `true` once the budget is spent.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.n_steps_left.get() == 0
    }

    /// Returns `true` for an embedded schema resource, whose references lead into itself.
    pub(crate) fn is_embedded(&self, schema: &Value) -> bool {
        let id = schema.get("$id").and_then(Value::as_str);
        id.is_some_and(|id| !id.starts_with('#')) && !std::ptr::eq(schema, self.root)
    }

    /// Returns `true` if a subschema accepts values of this type and, for objects, the constants and required members match.
    pub(crate) fn admits(&self, schema: &'a Value, kind: JsonKind, value: &RawJson, depth: usize) -> bool {
        if !self.take_step() {
            return false;
        }
        let Some(keywords) = self.resolved(schema).as_object() else {
            return schema != &Value::Bool(false);
        };
        if depth > MAX_IN_PLACE {
            return true;
        }
        let wanted = wants(keywords);
        if !wanted.is_empty() && !wanted.iter().any(|wanted| is_a(value, wanted)) {
            return false;
        }
        for keyword in ["anyOf", "oneOf"] {
            let branches = list(keywords, keyword);
            if !branches.is_empty()
                && !branches
                    .iter()
                    .any(|branch| self.admits(branch, kind, value, depth + 1))
            {
                return false;
            }
        }
        if kind != JsonKind::Object {
            return true;
        }
        let properties = keywords.get("properties").and_then(Value::as_object);
        let has_required = list(keywords, "required")
            .iter()
            .filter_map(Value::as_str)
            .all(|key| value.get(key).is_some());
        let has_constants = properties.into_iter().flatten().all(|(key, property)| {
            let Some(constant) = property.get("const") else {
                return true;
            };
            // Compared as canonical JSON (RFC 8785), in which 1 and 1.0 are equal.
            let constant = raw_json::canonical(&RawJson::from(constant));
            value
                .get(key)
                .is_none_or(|member| raw_json::canonical(&member) == constant)
        });
        has_required && has_constants
    }

    /// Follows the references of a subschema to the last target.
    pub(crate) fn resolved(&self, schema: &'a Value) -> &'a Value {
        let mut schema = schema;
        for _ in 0..MAX_IN_PLACE {
            match schema.as_object().and_then(|keywords| self.referred(keywords)) {
                Some(target) => schema = target,
                None => break,
            }
        }
        schema
    }

    /// Returns the target of `$ref`, if it is in this document.
    pub(crate) fn referred(&self, keywords: &Map<String, Value>) -> Option<&'a Value> {
        let reference = keywords.get("$ref")?.as_str()?;
        let is_name = reference.len() > 1 && !reference.starts_with("#/");
        let anchors = match is_name {
            true => self.anchors.get_or_init(|| anchors(self.root)),
            false => &Vec::new(),
        };
        match resolve(self.root, anchors, reference) {
            Target::Part(target) => Some(target),
            Target::Elsewhere => None,
        }
    }
}

/// Calls `visit` with each subschema of a document and the JSON Pointer to it.
pub(crate) fn each_subschema<'a>(root: &'a Value, visit: &mut impl FnMut(&str, &'a Value)) {
    let mut left = vec![(String::new(), root)];
    while let Some((pointer, schema)) = left.pop() {
        visit(&pointer, schema);
        let below = |keyword: &str| {
            let mut pointer = pointer.clone();
            pointer_step(&mut pointer, keyword);
            pointer
        };
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            let is_in = |known: &[&str]| known.contains(&keyword.as_str());
            match value {
                Value::Array(items) if is_in(&IN_PLACE_LISTS) || is_in(&BELOW_LISTS) => {
                    let pointer = below(keyword);
                    let items = items.iter().enumerate();
                    left.extend(items.map(|(index, item)| (format!("{pointer}/{index}"), item)));
                }
                Value::Object(members)
                    if is_in(&IN_PLACE_MAPS) || is_in(&BELOW_MAPS) || is_in(&DEFINITIONS) =>
                {
                    for (key, member) in members {
                        let mut pointer = below(keyword);
                        pointer_step(&mut pointer, key);
                        left.push((pointer, member));
                    }
                }
                _ if is_in(&IN_PLACE) || is_in(&BELOW) => left.push((below(keyword), value)),
                _ => {}
            }
        }
    }
}

/// Appends a key to a JSON Pointer (RFC 6901).
pub(crate) fn pointer_step(pointer: &mut String, key: &str) {
    pointer.push('/');
    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
}

/// Returns the elements of a keyword that is a list.
pub(crate) fn list<'a>(keywords: &'a Map<String, Value>, keyword: &str) -> &'a [Value] {
    keywords
        .get(keyword)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Subschemas of the items of an array.
#[derive(Clone, Copy)]
pub(crate) struct ItemSchemas<'a> {
    prefix: &'a [Value],
    rest: Option<&'a Value>,
}

impl<'a> ItemSchemas<'a> {
    /// Reads the keywords of a subschema. Returns `None` if it has no subschema for items.
    ///
    /// `items` was a list before `prefixItems` took that part over, and `additionalItems` the rest.
    pub(crate) fn from_keywords(keywords: &'a Map<String, Value>) -> Option<Self> {
        let prefix = match list(keywords, "prefixItems") {
            [] => list(keywords, "items"),
            prefix => prefix,
        };
        let rest = ["items", "additionalItems"]
            .iter()
            .filter_map(|keyword| keywords.get(*keyword))
            .find(|items| items.is_object());
        (!prefix.is_empty() || rest.is_some()).then_some(Self { prefix, rest })
    }

    /// Rewrites the items of an array. `change` gets the index of an item, its subschema and the item. Returns `None` if
    /// it changes no item.
    pub(crate) fn rewrite(
        self,
        array: &RawJson,
        mut change: impl FnMut(usize, &'a Value, &RawJson) -> Option<RawJson>,
    ) -> Option<RawJson> {
        let mut is_changed = false;
        let mut text = String::with_capacity(array.len());
        for (index, item) in array.items().enumerate() {
            let schema = self.prefix.get(index).or(self.rest);
            let next = schema.and_then(|schema| change(index, schema, &item));
            is_changed |= next.is_some();
            text.push(if index == 0 { '[' } else { ',' });
            text.push_str(next.as_ref().unwrap_or(&item).as_str());
        }
        text.push(']');
        is_changed.then(|| RawJson::parse(text).ok()).flatten()
    }
}

/// Returns the types that a subschema accepts, by `type` or by the values that it lists. Empty if it restricts neither.
pub(crate) fn wants(keywords: &Map<String, Value>) -> Vec<&str> {
    match keywords.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => {
            let constant = keywords.get("const");
            let listed = list(keywords, "enum").iter().chain(constant);
            let mut types: Vec<&str> = listed.map(type_of).collect();
            types.dedup();
            types
        }
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

pub(crate) fn is_a(value: &RawJson, wanted: &str) -> bool {
    match value.kind() {
        JsonKind::Null => wanted == "null",
        JsonKind::Bool => wanted == "boolean",
        JsonKind::String => wanted == "string",
        JsonKind::Array => wanted == "array",
        JsonKind::Object => wanted == "object",
        JsonKind::Number => wanted == "number" || wanted == "integer" && is_whole(value),
    }
}

fn is_whole(number: &RawJson) -> bool {
    !number.as_str().contains(['.', 'e', 'E']) || number.to::<f64>().is_ok_and(|number| number.fract() == 0.0)
}
