//! Differences of two schemas in their usual keywords, for people who want to know why one breaks the other.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{SchemaBreak, Side};
use crate::mismatch::cut;

/// Maximum number of reasons.
const MAX_REASONS: usize = 20;
/// Maximum depth of the search.
const MAX_DEPTH: usize = 32;
/// Maximum length of a quoted value, in characters.
const MAX_QUOTED: usize = 100;

/// Returns the differences by which `wider` may refuse values that `narrower` accepts.
pub(super) fn reasons(wider: &Value, narrower: &Value, side: Side) -> Vec<SchemaBreak> {
    let mut search = Search {
        side,
        breaks: Vec::new(),
    };
    search.compare("", wider, narrower, 0);
    search.breaks.truncate(MAX_REASONS);
    search.breaks
}

struct Search {
    side: Side,
    breaks: Vec<SchemaBreak>,
}

impl Search {
    /// Adds a difference, in the words of arguments or of results.
    fn add(&mut self, path: &str, of_input: String, of_output: String) {
        let message = match self.side {
            Side::Input => of_input,
            Side::Output => of_output,
        };
        self.breaks.push(SchemaBreak::new(path, message));
    }

    fn compare(&mut self, path: &str, wider: &Value, narrower: &Value, depth: usize) {
        let (Some(wider), Some(narrower)) = (wider.as_object(), narrower.as_object()) else {
            return;
        };
        if depth > MAX_DEPTH || self.breaks.len() >= MAX_REASONS {
            return;
        }
        self.required(path, wider, narrower);
        self.types(path, wider, narrower);
        self.values(path, wider, narrower);
        self.bounds(path, wider, narrower);
        self.properties(path, wider, narrower, depth);
        for keyword in ["items", "additionalProperties"] {
            if let (Some(wider), Some(narrower)) = (wider.get(keyword), narrower.get(keyword)) {
                self.compare(&format!("{path}/{keyword}"), wider, narrower, depth + 1);
            }
        }
    }

    fn required(&mut self, path: &str, wider: &Map<String, Value>, narrower: &Map<String, Value>) {
        let known = texts(narrower.get("required"));
        for name in texts(wider.get("required")) {
            if !known.contains(&name) {
                let name = cut(name, MAX_QUOTED);
                let of_output = format!("does not guarantee `{name}` any more");
                self.add(path, format!("requires `{name}`"), of_output);
            }
        }
    }

    fn properties(
        &mut self,
        path: &str,
        wider: &Map<String, Value>,
        narrower: &Map<String, Value>,
        depth: usize,
    ) {
        let is_closed =
            |schema: &Map<String, Value>| schema.get("additionalProperties") == Some(&Value::Bool(false));
        let properties =
            |schema: &'_ Map<String, Value>| schema.get("properties").and_then(Value::as_object).cloned();
        let (of_wider, of_narrower) = (
            properties(wider).unwrap_or_default(),
            properties(narrower).unwrap_or_default(),
        );
        for (name, narrower) in &of_narrower {
            match of_wider.get(name) {
                Some(wider) => {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    self.compare(&format!("{path}/properties/{name}"), wider, narrower, depth + 1);
                }
                None if is_closed(wider) => {
                    let name = cut(name, MAX_QUOTED);
                    self.add(
                        path,
                        format!("has no property `{name}` any more"),
                        format!("has a new property `{name}`"),
                    );
                }
                None => {}
            }
        }
        if is_closed(wider) && !is_closed(narrower) {
            let of_input = "refuses properties that it does not name".to_owned();
            self.add(
                path,
                of_input,
                "allows properties that it does not name".to_owned(),
            );
        }
    }

    fn types(&mut self, path: &str, wider: &Map<String, Value>, narrower: &Map<String, Value>) {
        let Some(of_wider) = types(wider) else {
            return;
        };
        let accepts =
            |one: &str| of_wider.contains(&one) || (one == "integer" && of_wider.contains(&"number"));
        let of_narrower = types(narrower);
        if of_narrower
            .as_ref()
            .is_some_and(|types| types.iter().all(|one| accepts(one)))
        {
            return;
        }
        let shown = |types: Option<&Vec<&str>>| {
            types.map_or_else(|| "any type".to_owned(), |types| types.join(" or "))
        };
        let (wide, narrow) = (shown(Some(&of_wider)), shown(of_narrower.as_ref()));
        let of_output = format!("widens the type from {wide} to {narrow}");
        self.add(
            path,
            format!("narrows the type from {narrow} to {wide}"),
            of_output,
        );
    }

    fn values(&mut self, path: &str, wider: &Map<String, Value>, narrower: &Map<String, Value>) {
        let Some(of_wider) = enumerated(wider) else {
            return;
        };
        let of_narrower = enumerated(narrower);
        let Some(of_narrower) = of_narrower else {
            let of_input = "limits the values to a list".to_owned();
            self.add(
                path,
                of_input,
                "does not limit the values to a list any more".to_owned(),
            );
            return;
        };
        let lost = of_narrower.iter().filter(|value| !of_wider.contains(value));
        let mut shown = String::new();
        for value in lost {
            let separator = if shown.is_empty() { "" } else { ", " };
            let _ = write!(shown, "{separator}{}", cut(&value.to_string(), MAX_QUOTED));
        }
        if !shown.is_empty() {
            let shown = cut(&shown, 2 * MAX_QUOTED);
            self.add(
                path,
                format!("has no value {shown} any more"),
                format!("has the new value {shown}"),
            );
        }
    }

    fn bounds(&mut self, path: &str, wider: &Map<String, Value>, narrower: &Map<String, Value>) {
        const LOWER: [&str; 5] = [
            "minimum",
            "exclusiveMinimum",
            "minLength",
            "minItems",
            "minProperties",
        ];
        const UPPER: [&str; 5] = [
            "maximum",
            "exclusiveMaximum",
            "maxLength",
            "maxItems",
            "maxProperties",
        ];
        let number = |schema: &Map<String, Value>, keyword: &str| schema.get(keyword).and_then(Value::as_f64);
        for (keyword, is_lower) in LOWER
            .map(|keyword| (keyword, true))
            .into_iter()
            .chain(UPPER.map(|keyword| (keyword, false)))
        {
            let (Some(bound), before) = (number(wider, keyword), number(narrower, keyword)) else {
                continue;
            };
            let is_tighter =
                before.is_none_or(|before| if is_lower { bound > before } else { bound < before });
            if is_tighter {
                let before = before.map_or_else(|| "none".to_owned(), |before| before.to_string());
                let of_output = format!("loosens `{keyword}` from {bound} to {before}");
                self.add(
                    path,
                    format!("tightens `{keyword}` from {before} to {bound}"),
                    of_output,
                );
            }
        }
        for keyword in ["pattern", "multipleOf", "uniqueItems", "not", "const"] {
            let (now, before) = (wider.get(keyword), narrower.get(keyword));
            if now.is_some_and(|now| *now != Value::Bool(false)) && now != before {
                self.add(
                    path,
                    format!("has another `{keyword}`"),
                    format!("has another `{keyword}`"),
                );
            }
        }
    }
}

fn texts(list: Option<&Value>) -> Vec<&str> {
    let items = list.and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns the types that a schema names; `None` if it accepts any.
fn types(schema: &Map<String, Value>) -> Option<Vec<&str>> {
    match schema.get("type")? {
        Value::String(one) => Some(vec![one]),
        list => Some(texts(Some(list))),
    }
}

fn enumerated(schema: &Map<String, Value>) -> Option<&Vec<Value>> {
    schema.get("enum")?.as_array()
}
