//! Values made from a schema, which are tried as counterexamples.

use serde_json::{Map, Value, json};

use crate::Schema;

/// Maximum number of values of one schema.
const MAX_SAMPLES: usize = 64;
/// Maximum number of values of one property.
const MAX_OF_PROPERTY: usize = 8;
/// Maximum depth of values.
const MAX_DEPTH: usize = 6;

/// Returns a value that `narrower` accepts and `wider` refuses, if one of the samples is one.
pub(super) fn counterexample(wider: &Schema, narrower: &Schema) -> Option<Value> {
    let mut samples = samples(narrower.value(), 0);
    // Values for places that only the wider schema describes.
    samples.extend(merged_samples(narrower.value(), wider.value()));
    let mut samples = samples.into_iter();
    samples.find(|value| narrower.check(value).is_ok() && wider.check(value).is_err())
}

/// Returns samples of `narrower`, with properties that only `wider` names.
fn merged_samples(narrower: &Value, wider: &Value) -> Vec<Value> {
    let (Some(properties), Some(base)) = (
        wider["properties"].as_object(),
        samples(narrower, 0).into_iter().next(),
    ) else {
        return Vec::new();
    };
    let others = properties
        .keys()
        .filter(|name| narrower["properties"].get(name.as_str()).is_none());
    let mut merged = Vec::new();
    for name in others.take(MAX_OF_PROPERTY) {
        for value in simple() {
            let mut sample = base.clone();
            if let Some(members) = sample.as_object_mut() {
                members.insert(name.clone(), value);
                merged.push(sample);
            }
        }
    }
    merged
}

/// Returns one value of each type, and edges of them.
fn simple() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(0.5),
        json!(""),
        json!("a"),
        json!([]),
        json!({}),
    ]
}

/// Returns values that the schema may accept.
fn samples(schema: &Value, depth: usize) -> Vec<Value> {
    let Some(members) = schema.as_object() else {
        return simple();
    };
    let mut all: Vec<Value> = Vec::new();
    all.extend(members.get("const").cloned());
    for keyword in ["enum", "examples"] {
        let listed = members.get(keyword).and_then(Value::as_array);
        all.extend(listed.into_iter().flatten().take(MAX_SAMPLES).cloned());
    }
    all.extend(members.get("default").cloned());
    if depth < MAX_DEPTH {
        for keyword in ["anyOf", "oneOf", "allOf"] {
            let branches = members.get(keyword).and_then(Value::as_array);
            for branch in branches.into_iter().flatten().take(MAX_OF_PROPERTY) {
                all.extend(samples(branch, depth + 1).into_iter().take(MAX_OF_PROPERTY));
            }
        }
    }
    let has_type = |wanted: &str| match members.get("type") {
        None => true,
        Some(Value::Array(types)) => types.iter().any(|one| one == wanted),
        Some(one) => one == wanted,
    };
    for (name, make) in [
        ("object", object as fn(&Map<String, Value>, usize) -> Vec<Value>),
        ("array", array),
        ("number", numbers),
        ("integer", numbers),
        ("string", strings),
    ] {
        if has_type(name) {
            all.extend(make(members, depth));
        }
    }
    for (name, value) in [
        ("null", json!(null)),
        ("boolean", json!(true)),
        ("boolean", json!(false)),
    ] {
        if has_type(name) {
            all.push(value);
        }
    }
    all.truncate(MAX_SAMPLES);
    all
}

fn numbers(schema: &Map<String, Value>, _: usize) -> Vec<Value> {
    let mut numbers = vec![json!(0), json!(1), json!(-1), json!(0.5), json!(1_000_000)];
    let bounds = [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
    ];
    for bound in bounds.iter().filter_map(|bound| schema.get(*bound)) {
        numbers.push(bound.clone());
        if let Some(bound) = bound.as_i64() {
            numbers.extend([json!(bound.saturating_add(1)), json!(bound.saturating_sub(1))]);
        }
    }
    numbers
}

fn strings(schema: &Map<String, Value>, _: usize) -> Vec<Value> {
    let mut strings = vec![
        json!(""),
        json!("a"),
        json!("text"),
        json!("0"),
        json!("2024-01-31"),
    ];
    for bound in ["minLength", "maxLength"]
        .iter()
        .filter_map(|bound| schema.get(*bound)?.as_u64())
    {
        strings.push("a".repeat(usize::try_from(bound.min(10_000)).unwrap_or(0)).into());
    }
    strings
}

fn array(schema: &Map<String, Value>, depth: usize) -> Vec<Value> {
    let mut arrays = vec![json!([])];
    if depth >= MAX_DEPTH {
        return arrays;
    }
    let any = Value::Bool(true);
    let items = schema.get("items").unwrap_or(&any);
    for item in samples(items, depth + 1).into_iter().take(MAX_OF_PROPERTY) {
        arrays.push(json!([item]));
        let n_items = schema
            .get("minItems")
            .and_then(Value::as_u64)
            .unwrap_or(2)
            .min(20);
        arrays.push((0..n_items).map(|_| item.clone()).collect::<Vec<_>>().into());
    }
    arrays
}

/// Returns objects with the required properties, with all properties, and with each sample of each property.
fn object(schema: &Map<String, Value>, depth: usize) -> Vec<Value> {
    if depth >= MAX_DEPTH {
        return vec![json!({})];
    }
    let none = Map::new();
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&none);
    let any = Value::Bool(true);
    let of_property = |name: &str| {
        let mut samples = samples(properties.get(name).unwrap_or(&any), depth + 1);
        samples.truncate(MAX_OF_PROPERTY);
        samples
    };
    let required = schema.get("required").and_then(Value::as_array);
    let required: Vec<&str> = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .take(MAX_SAMPLES)
        .collect();
    let mut least = Map::new();
    for name in &required {
        let first = of_property(name).into_iter().next();
        least.insert((*name).to_owned(), first.unwrap_or(Value::Null));
    }
    let mut all = vec![Value::Object(least.clone())];
    let mut with_extra = least.clone();
    with_extra.insert("extra".to_owned(), json!("a"));
    all.push(Value::Object(with_extra));
    for name in properties.keys().take(MAX_SAMPLES) {
        for value in of_property(name) {
            let mut sample = least.clone();
            sample.insert(name.clone(), value);
            all.push(Value::Object(sample));
        }
    }
    all
}
