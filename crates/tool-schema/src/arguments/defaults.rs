//! Defaults of a schema, filled in for absent members.
//!
//! The walk follows the arguments and the subschemas that apply to each value: `properties`, `items`, `prefixItems`,
//! `additionalProperties`, `$ref`, `allOf`, and `anyOf` and `oneOf` where only one branch accepts the value. It
//! repeats until no member is added, so arguments that were filled once are not changed again.

use raw_json::{JsonKind, RawJson};
use serde_json::{Map, Value};
use tool_check::{AdaptedArguments, Change, ChangeKind};

use crate::document::{Document, ItemSchemas, MAX_IN_PLACE, each_subschema, list, pointer_step};

/// Maximum number of subschemas that are visited for one object of arguments.
const MAX_STEPS: u64 = 500_000;
/// Maximum size of all defaults that are filled in for one object of arguments, in bytes.
const MAX_FILLED: usize = 256 * 1024;
/// Maximum number of walks over the arguments.
const MAX_WALKS: usize = 16;

/// Default of a schema that is never filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnusableDefault {
    /// Place of the default in the schema, as a JSON Pointer (RFC 6901).
    pub pointer: String,
    message: String,
}

impl UnusableDefault {
    fn new(subschema: &str, reason: &str) -> Self {
        let pointer = format!("{subschema}/default");
        let message = format!("the default at `{pointer}` is never filled in: {reason}");
        Self { pointer, message }
    }
}

/// Defaults of a schema that can be filled in.
pub(crate) struct Defaults {
    /// Schema without its unusable defaults; `None` if no usable default remains.
    schema: Option<Value>,
    unusable: Vec<UnusableDefault>,
}

impl Defaults {
    /// Finds the usable defaults of a schema. `fault` returns the reason if a value does not fit the subschema at a pointer.
    pub(crate) fn find(root: &Value, fault: impl Fn(&str, &Value) -> Option<String>) -> Self {
        let mut all = Vec::new();
        each_subschema(root, &mut |pointer, schema| {
            if let Some(default) = schema.get("default") {
                all.push((pointer.to_owned(), default));
            }
        });
        let mut usable = root.clone();
        let mut unusable = Vec::new();
        for (pointer, default) in &all {
            if let Some(reason) = fault(pointer, default) {
                remove(&mut usable, pointer);
                unusable.push((pointer.clone(), *default, reason));
            }
        }
        // A default may lack members that have defaults themselves.
        for _ in 0..MAX_WALKS {
            let n_before = unusable.len();
            unusable.retain(|(pointer, default, _)| {
                let schema = usable.pointer(pointer);
                let filled =
                    schema.and_then(|schema| Walk::new(&usable).value(schema, &RawJson::from(*default), 0));
                let fits = filled
                    .and_then(|filled| filled.to::<Value>().ok())
                    .is_some_and(|filled| fault(pointer, &filled).is_none());
                if let (true, Some(Value::Object(keywords))) = (fits, usable.pointer_mut(pointer)) {
                    keywords.insert("default".to_owned(), (*default).clone());
                }
                !fits
            });
            if unusable.len() == n_before {
                break;
            }
        }
        let endless = endless(&usable, all.iter().map(|(pointer, _)| pointer));
        for pointer in endless {
            remove(&mut usable, pointer);
            let reason = "it would be filled into itself without end".to_owned();
            unusable.push((pointer.clone(), &Value::Null, reason));
        }
        unusable.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        Self {
            schema: (unusable.len() < all.len()).then_some(usable),
            unusable: unusable
                .into_iter()
                .map(|(pointer, _, reason)| UnusableDefault::new(&pointer, &reason))
                .collect(),
        }
    }

    pub(crate) fn unusable(&self) -> &[UnusableDefault] {
        &self.unusable
    }

    /// Fills in absent members. Returns `None` if there are none, or if that would exceed a budget.
    pub(crate) fn fill(&self, arguments: &RawJson) -> Option<AdaptedArguments> {
        let schema = self.schema.as_ref()?;
        let mut walk = Walk::new(schema);
        let mut filled: Option<RawJson> = None;
        for _ in 0..MAX_WALKS {
            let present = filled.as_ref().unwrap_or(arguments);
            match walk.value(schema, present, 0) {
                _ if walk.is_exhausted() => return None,
                Some(next) => filled = Some(next),
                None => {
                    return filled.map(|arguments| AdaptedArguments::new(arguments, walk.changes));
                }
            }
        }
        None
    }
}

fn remove(root: &mut Value, pointer: &str) {
    if let Some(Value::Object(keywords)) = root.pointer_mut(pointer) {
        // `remove` would change the order of the others if the program keeps the order of members.
        keywords.retain(|keyword, _| keyword != "default");
    }
}

/// Returns the subschemas whose defaults contain themselves, or would become too large.
fn endless<'p>(root: &Value, pointers: impl Iterator<Item = &'p String> + Clone) -> Vec<&'p String> {
    let subschemas = pointers.filter_map(|pointer| Some((pointer, root.pointer(pointer)?)));
    let mut endless = Vec::new();
    for (_, schema) in subschemas.clone() {
        let Some(default) = schema.get("default") else {
            continue;
        };
        let mut walk = Walk::new(root);
        walk.filling.push(address(schema));
        walk.value(schema, &RawJson::from(default), 0);
        endless.append(&mut walk.endless);
        if walk.is_exhausted() {
            endless.push(address(schema));
        }
    }
    subschemas
        .filter(|(_, schema)| endless.contains(&address(schema)))
        .map(|(pointer, _)| pointer)
        .collect()
}

/// Returns the address of a subschema as its identity. The document does not move during the walk.
fn address(schema: &Value) -> usize {
    std::ptr::from_ref(schema) as usize
}

struct Walk<'a> {
    document: Document<'a>,
    /// Place in the arguments, as a JSON Pointer.
    path: String,
    changes: Vec<Change>,
    n_bytes_left: usize,
    /// Subschemas whose defaults are being filled in, each inside the previous one.
    filling: Vec<usize>,
    /// Subschemas that occurred inside themselves.
    endless: Vec<usize>,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Value) -> Self {
        Self {
            document: Document::new(root, MAX_STEPS),
            path: String::new(),
            changes: Vec::new(),
            n_bytes_left: MAX_FILLED,
            filling: Vec::new(),
            endless: Vec::new(),
        }
    }

    fn is_exhausted(&self) -> bool {
        self.n_bytes_left == 0 || self.document.is_exhausted()
    }

    /// Fills in the defaults of a subschema. Returns `None` if there is no change.
    fn value(&mut self, schema: &'a Value, value: &RawJson, in_place: usize) -> Option<RawJson> {
        if !matches!(value.kind(), JsonKind::Object | JsonKind::Array) {
            return None;
        }
        let keywords = schema.as_object()?;
        let is_too_deep = in_place > MAX_IN_PLACE || self.document.is_embedded(schema);
        if is_too_deep || self.is_exhausted() || !self.document.take_step() {
            return None;
        }
        let mut filled = match value.kind() {
            JsonKind::Object => self.object(keywords, value),
            _ => self.array(keywords, value),
        };
        let target = self.document.referred(keywords);
        for part in target.into_iter().chain(list(keywords, "allOf")) {
            let next = self.value(part, filled.as_ref().unwrap_or(value), in_place + 1);
            filled = next.or(filled);
        }
        for keyword in ["anyOf", "oneOf"] {
            let present = filled.clone().unwrap_or_else(|| value.clone());
            if let Some(branch) = self.only_branch(list(keywords, keyword), &present) {
                filled = self.value(branch, &present, in_place + 1).or(filled);
            }
        }
        filled
    }

    fn object(&mut self, keywords: &'a Map<String, Value>, value: &RawJson) -> Option<RawJson> {
        let properties = keywords.get("properties").and_then(Value::as_object);
        let others = keywords
            .get("additionalProperties")
            .filter(|others| others.is_object() && !keywords.contains_key("patternProperties"));
        if properties.is_none() && others.is_none() {
            return None;
        }
        let mut members: Vec<(String, RawJson)> = Vec::new();
        for (key, member) in value.members() {
            let known = properties.and_then(|properties| properties.get(&*key));
            let Some(schema) = known.or(others) else {
                continue;
            };
            let length = self.path.len();
            pointer_step(&mut self.path, &key);
            if let Some(member) = self.value(schema, &member, 0) {
                members.push((key.into_owned(), member));
            }
            self.path.truncate(length);
        }
        for (key, schema) in properties.into_iter().flatten() {
            if value.get(key).is_none()
                && let Some(member) = self.absent(key, schema)
            {
                members.push((key.clone(), member));
            }
        }
        if members.is_empty() {
            return None;
        }
        let members: Vec<(&str, RawJson)> = members
            .iter()
            .map(|(key, member)| (key.as_str(), member.clone()))
            .collect();
        value.with_members(&members).ok()
    }

    /// Returns the value of an absent member, if its subschema has a default.
    fn absent(&mut self, key: &str, schema: &'a Value) -> Option<RawJson> {
        let (owner, default) = self.default_of(schema, 0)?;
        let owner = address(owner);
        if let Some(position) = self.filling.iter().position(|filling| *filling == owner) {
            self.endless.extend_from_slice(&self.filling[position..]);
            return None;
        }
        let default = RawJson::from(default);
        self.n_bytes_left = self.n_bytes_left.saturating_sub(default.len() + key.len());
        let length = self.path.len();
        pointer_step(&mut self.path, key);
        let change = Change::new(self.path.as_str(), ChangeKind::Filled, "default of the schema");
        self.changes.push(change);
        self.filling.push(owner);
        // Reported as one change, since its members are parts of the default.
        let n_changes = self.changes.len();
        let filled = self.value(schema, &default, 0);
        self.changes.truncate(n_changes);
        self.filling.pop();
        self.path.truncate(length);
        Some(filled.unwrap_or(default))
    }

    /// Returns the default of a subschema and the subschema that contains it: its own default, else that of the target of its
    /// reference, else the first among the parts of `allOf`.
    fn default_of(&self, schema: &'a Value, depth: usize) -> Option<(&'a Value, &'a Value)> {
        let keywords = schema.as_object()?;
        if depth > MAX_IN_PLACE || self.document.is_embedded(schema) || !self.document.take_step() {
            return None;
        }
        if let Some(default) = keywords.get("default") {
            return Some((schema, default));
        }
        let target = self.document.referred(keywords);
        let mut parts = target.into_iter().chain(list(keywords, "allOf"));
        parts.find_map(|part| self.default_of(part, depth + 1))
    }

    fn array(&mut self, keywords: &'a Map<String, Value>, value: &RawJson) -> Option<RawJson> {
        ItemSchemas::from_keywords(keywords)?.rewrite(value, |index, schema, item| {
            let length = self.path.len();
            pointer_step(&mut self.path, &index.to_string());
            let next = self.value(schema, item, 0);
            self.path.truncate(length);
            next
        })
    }

    /// Returns the branch of a union that accepts a value, if no other branch does.
    fn only_branch(&self, branches: &'a [Value], value: &RawJson) -> Option<&'a Value> {
        let kind = value.kind();
        let mut taking = branches
            .iter()
            .filter(|branch| self.document.admits(branch, kind, value, 0));
        let first = taking.next()?;
        taking.next().is_none().then_some(first)
    }
}
