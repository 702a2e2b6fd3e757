//! Walk over the public items in a description of rustdoc.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::Value;

/// Crates of the standard library.
const STANDARD: [&str; 4] = ["alloc", "core", "proc_macro", "std"];
/// Crates that define the items of another one, under whose name they are known.
const DEFINED_FOR: [(&str, &str); 3] = [
    ("futures_core", "futures_util"),
    ("serde_core", "serde"),
    ("tracing_core", "tracing"),
];

/// Description of one library.
pub(super) struct Signatures {
    described: Value,
}

/// Places of one third-party crate in a public API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// Public items that mention the crate.
    pub(super) items: BTreeSet<String>,
    /// Paths under which the library re-exports the crate or one of its items.
    pub(super) reexports: BTreeSet<String>,
}

impl Signatures {
    /// Parses a description.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let described: Value = serde_json::from_str(text).context("it is not JSON")?;
        described
            .pointer("/index")
            .and_then(Value::as_object)
            .context("it has no index")?;
        Ok(Self { described })
    }

    /// Finds the third-party crates whose items are re-exported or mentioned by a public item.
    pub(super) fn foreign_crates(&self) -> BTreeMap<String, Shown> {
        let mut found = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let root = self.described["root"].as_u64().unwrap_or_default();
        let mut open = vec![(root, String::new())];
        while let Some((id, parent)) = open.pop() {
            let Some(item) = self.item(id).filter(|item| is_public(item)) else {
                continue;
            };
            if !seen.insert(id) {
                continue;
            }
            let Some((kind, inner)) = inner_of(item) else {
                continue;
            };
            if kind == "use" {
                self.add_use(inner, &parent, &mut found, &mut open);
                continue;
            }
            let name = named(&parent, kind, item);
            if kind != "impl" || is_own_impl(inner) {
                self.add_mentions(inner, &name, &mut found);
                open.extend(children(kind, inner).map(|child| (child, name.clone())));
            }
        }
        found
    }

    fn item(&self, id: u64) -> Option<&Value> {
        self.described["index"].get(id.to_string())
    }

    /// Follows a re-export of an item of this library, and adds one of another crate.
    fn add_use(
        &self,
        inner: &Value,
        parent: &str,
        found: &mut BTreeMap<String, Shown>,
        open: &mut Vec<(u64, String)>,
    ) {
        let Some(id) = inner["id"].as_u64() else { return };
        match self.foreign(id) {
            Some(foreign) => {
                let path = joined(parent, inner["name"].as_str().unwrap_or_default());
                found.entry(foreign).or_default().reexports.insert(path);
            }
            // The items of a private module become public by `pub use module::*`.
            None if inner["is_glob"] == true => {
                let module = self.item(id).and_then(inner_of);
                let items = module.map(|(kind, inner)| children(kind, inner));
                open.extend(
                    items
                        .into_iter()
                        .flatten()
                        .map(|child| (child, parent.to_owned())),
                );
            }
            None => open.push((id, parent.to_owned())),
        }
    }

    /// Adds the crates of all paths in a signature.
    fn add_mentions(&self, value: &Value, name: &str, found: &mut BTreeMap<String, Shown>) {
        if let Some(id) = value.get("path").and(value.get("id")).and_then(Value::as_u64)
            && let Some(foreign) = self.foreign(id)
        {
            found.entry(foreign).or_default().items.insert(name.to_owned());
        }
        match value {
            Value::Array(values) => values
                .iter()
                .for_each(|value| self.add_mentions(value, name, found)),
            Value::Object(values) => values
                .values()
                .for_each(|value| self.add_mentions(value, name, found)),
            _ => {}
        }
    }

    /// Returns the crate of an item, or `None` for items of this library and of the standard library.
    fn foreign(&self, id: u64) -> Option<String> {
        let krate = match self.described["paths"].get(id.to_string()) {
            Some(path) => path["crate_id"].as_u64()?,
            None => self.item(id)?["crate_id"].as_u64()?,
        };
        let name = self.described["external_crates"].get(krate.to_string())?["name"].as_str()?;
        let known = DEFINED_FOR.iter().find(|(definer, _)| *definer == name);
        let name = known.map_or(name, |(_, known)| known);
        (krate != 0 && !STANDARD.contains(&name)).then(|| name.to_owned())
    }
}

fn inner_of(item: &Value) -> Option<(&str, &Value)> {
    let (kind, inner) = item["inner"].as_object()?.iter().next()?;
    Some((kind, inner))
}

/// Returns `true` for an item that users can name. Members of traits and of enums are as visible as these.
fn is_public(item: &Value) -> bool {
    let is_visible = matches!(item["visibility"].as_str(), Some("public" | "default"));
    let is_hidden = item["attrs"].to_string().contains("doc(hidden)");
    is_visible && !is_hidden
}

/// Returns `true` unless an implementation was made by the compiler or by another crate for all types.
fn is_own_impl(inner: &Value) -> bool {
    inner["is_synthetic"] != true && inner["blanket_impl"].is_null()
}

/// Returns the ids of the members of an item.
fn children(kind: &str, inner: &Value) -> impl Iterator<Item = u64> {
    let pointers: &[&str] = match kind {
        "module" | "trait" => &["/items"],
        // The members of an implementation of a trait are declared by that trait.
        "impl" if inner["trait"].is_null() => &["/items"],
        "struct" => &["/kind/plain/fields", "/kind/tuple", "/impls"],
        "union" => &["/fields", "/impls"],
        "enum" => &["/variants", "/impls"],
        "variant" => &["/kind/struct/fields", "/kind/tuple"],
        _ => &[],
    };
    pointers
        .iter()
        .filter_map(|pointer| inner.pointer(pointer)?.as_array())
        .flatten()
        .filter_map(Value::as_u64)
        .collect::<Vec<_>>()
        .into_iter()
}

/// Returns the path of an item in its library. The library itself and implementations add nothing to it.
fn named(parent: &str, kind: &str, item: &Value) -> String {
    let name = item["name"].as_str().unwrap_or_default();
    if kind == "impl" || (kind == "module" && parent.is_empty() && is_root(item)) {
        return parent.to_owned();
    }
    joined(parent, name)
}

fn is_root(item: &Value) -> bool {
    item["inner"]["module"]["is_crate"] == true
}

fn joined(parent: &str, name: &str) -> String {
    if parent.is_empty() {
        name.to_owned()
    } else {
        format!("{parent}::{name}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Describes a library: a private module with `Request { pub head: http::Head, body: bytes::Bytes }`, which is
    /// re-exported, implements `serde::Serialize` and has `read(&self) -> std::Option`; and `pub use http;`.
    fn description() -> String {
        let item = |crate_id: u64, name: &str, visibility: &str, inner: Value| json!({"crate_id": crate_id, "name": name, "visibility": visibility, "attrs": [], "inner": inner});
        let path = |id: u64| json!({"resolved_path": {"path": "P", "id": id, "args": null}});
        let implementation = |of: Value, items: Value| json!({"impl": {"trait": of, "for": path(3), "items": items, "is_synthetic": false, "blanket_impl": null}});
        json!({
            "root": 0,
            "index": {
                "0": item(0, "a", "public", json!({"module": {"is_crate": true, "items": [1, 2, 9]}})),
                "1": item(0, "inside", "crate", json!({"module": {"is_crate": false, "items": [3]}})),
                "2": item(0, "", "public", json!({"use": {"name": "Request", "id": 3, "is_glob": false}})),
                "3": item(0, "Request", "public", json!({"struct": {
                    "kind": {"plain": {"fields": [4, 5]}}, "generics": {}, "impls": [6, 7]}})),
                "4": item(0, "head", "public", json!({"struct_field": path(20)})),
                "5": item(0, "body", "crate", json!({"struct_field": path(21)})),
                "6": item(0, "", "default", implementation(json!({"path": "Serialize", "id": 22}), json!([]))),
                "7": item(0, "", "default", implementation(Value::Null, json!([8]))),
                "8": item(0, "read", "public", json!({"function": {"sig": {"output": path(23)}}})),
                "9": item(0, "", "public", json!({"use": {"name": "http", "id": 24, "is_glob": false}})),
            },
            "paths": {
                "20": {"crate_id": 1}, "21": {"crate_id": 2}, "22": {"crate_id": 3}, "23": {"crate_id": 4},
                "24": {"crate_id": 1},
            },
            "external_crates": {
                "1": {"name": "http"}, "2": {"name": "bytes"}, "3": {"name": "serde_core"}, "4": {"name": "core"},
            },
        })
        .to_string()
    }

    #[test]
    fn finds_foreign_crates_in_public_items_only() {
        let found = Signatures::parse(&description()).unwrap().foreign_crates();
        let shown = |items: &[&str], reexports: &[&str]| Shown {
            items: items.iter().map(ToString::to_string).collect(),
            reexports: reexports.iter().map(ToString::to_string).collect(),
        };
        let expected = BTreeMap::from([
            ("http".to_owned(), shown(&["Request::head"], &["http"])),
            ("serde".to_owned(), shown(&["Request"], &[])),
        ]);
        assert_eq!(found, expected);
    }
}
