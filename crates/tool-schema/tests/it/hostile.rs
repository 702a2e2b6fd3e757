//! Pairs of schema and value that would take a naive validator seconds to years. The tests assert the messages; a test that
//! hangs fails by the timeout of the runner.

use serde_json::{Map, Value, json};

use crate::{compile, complaint};

/// Returns a value that is nested in arrays.
fn nested(depth: usize, innermost: Value) -> Value {
    (0..depth).fold(innermost, |inner, _| json!([inner]))
}

#[test]
fn recursive_alternatives_do_not_blow_up() {
    let alternative = json!({"type": "array", "items": {"$ref": "#"}});
    let schema = json!({"anyOf": [alternative, alternative, alternative, {"type": "string"}]});
    assert!(complaint(&schema, &nested(60, json!(1))).is_some());
    assert_eq!(complaint(&schema, &nested(60, json!("x"))), None);
}

#[test]
fn recursive_alternatives_over_scalars_do_not_blow_up() {
    let alternative = json!({"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}, "required": ["a"]});
    let schema = json!({"oneOf": [alternative, alternative, {"type": "string"}]});
    let value = (0..14).fold(json!(1), |inner, _| json!({"a": inner, "b": inner}));
    let text = complaint(&schema, &value).unwrap();
    assert!(text.len() < 2_000, "{text}");
}

#[test]
fn nested_unevaluated_properties_do_not_blow_up() {
    let schema = (0..15).fold(
        json!({"properties": {"zz": true}}),
        |inner, _| json!({"anyOf": [inner, {"properties": {"a": true}}], "unevaluatedProperties": false}),
    );
    let _ = complaint(&schema, &json!({"zz": 1, "a": 2, "b": 3}));
    let _ = complaint(&schema, &json!({"a": 2}));
}

#[test]
fn distinct_items_that_hash_alike_elsewhere_do_not_blow_up() {
    // Each item nests the same numbers differently.
    let items: Vec<Value> = (0..40_000_u32)
        .map(|code| {
            (0..16).fold(json!([1]), |inner, bit| {
                if code >> bit & 1 == 1 {
                    json!([inner, bit])
                } else {
                    let mut items = inner.as_array().unwrap().clone();
                    items.push(json!(bit));
                    Value::Array(items)
                }
            })
        })
        .collect();
    assert_eq!(
        complaint(&json!({"uniqueItems": true}), &Value::Array(items)),
        None
    );

    let near: Vec<Value> = (0..20_000_u64)
        .map(|index| json!((1_u64 << 62) + index))
        .collect();
    assert_eq!(
        complaint(&json!({"uniqueItems": true}), &Value::Array(near.clone())),
        None
    );
    let mut twice = near;
    twice.push(twice[5].clone());
    assert!(complaint(&json!({"uniqueItems": true}), &Value::Array(twice)).is_some());
}

#[test]
fn backtracking_patterns_stop() {
    let schema = json!({"pattern": "^(?=a)(a+)+$"});
    assert!(complaint(&schema, &json!(format!("{}b", "a".repeat(5_000)))).is_some());
}

#[test]
fn large_automata_on_long_texts_stop() {
    let schema = json!({"items": {"pattern": "(a|b)*a(a|b){1000}c"}});
    let text: String = (0..50_000_u32)
        .map(|index| {
            if index.wrapping_mul(2_654_435_761) >> 31 == 0 {
                'a'
            } else {
                'b'
            }
        })
        .collect();
    assert!(complaint(&schema, &json!([text, text, text])).is_some());
}

#[test]
fn many_alternatives_on_many_items_stop() {
    let alternatives: Vec<Value> = (0..1_500).map(|index| json!({"const": index})).collect();
    let items: Vec<Value> = (0..100_000).map(|_| json!("none of them")).collect();
    assert!(complaint(&json!({"items": {"anyOf": alternatives}}), &Value::Array(items)).is_some());
}

#[test]
fn subschemas_that_ask_nothing_cost_something() {
    let nothing: Vec<Value> = (0..900).map(|_| json!({"allOf": [true]})).collect();
    let items: Vec<Value> = vec![json!(null); 500_000];
    let _ = complaint(&json!({"items": {"allOf": nothing}}), &Value::Array(items));
}

#[test]
fn deep_values_under_recursive_schemas_keep_the_stack() {
    // Thirty references between a value and its member.
    let mut definitions = Map::new();
    for index in 0..30 {
        definitions.insert(
            format!("d{index}"),
            json!({"allOf": [{"$ref": format!("#/$defs/d{}", index + 1)}]}),
        );
    }
    definitions.insert(
        "d30".to_owned(),
        json!({"items": {"$ref": "#/$defs/d0"}, "not": {"type": "null"}}),
    );
    let schema = json!({"$defs": definitions, "$ref": "#/$defs/d0"});
    assert_eq!(complaint(&schema, &nested(10, json!(1))), None);
    let text = complaint(&schema, &nested(120, json!(null))).unwrap();
    assert!(text.contains("simple enough to be checked"), "{text}");
}

#[test]
fn the_deepest_values_that_are_checked_keep_the_stack() {
    let schema = json!({"anyOf": [
        {"type": "null"},
        {"allOf": [{"type": "array", "items": {"$ref": "#"}}]},
        {"type": "object", "additionalProperties": {"$ref": "#"}},
    ]});
    assert_eq!(complaint(&schema, &nested(120, json!(null))), None);
    assert!(complaint(&schema, &nested(120, json!(1))).is_some());
}

#[test]
fn references_in_circles_end() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
        json!({"not": {"$ref": "#"}}),
        json!({"$dynamicAnchor": "a", "allOf": [{"$dynamicRef": "#a"}]}),
    ] {
        let _ = compile(&schema);
        let _ = complaint(&schema, &json!({"a": [1]}));
    }
}

#[test]
fn a_large_value_that_fits_is_accepted() {
    let item = json!({"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string", "minLength": 1}}, "required": ["id", "name"]});
    let items: Vec<Value> = (0..100_000)
        .map(|id| json!({"id": id, "name": "someone"}))
        .collect();
    let schema = json!({"type": "array", "items": item});
    assert_eq!(complaint(&schema, &Value::Array(items)), None);
}
