//! Defaults of a schema for absent members.

use proptest::{prelude::*, test_runner::RngSeed};
use raw_json::RawJson;
use serde_json::{Map, Value, json};
use tool_schema::{ChangeKind, CheckJson};

use crate::compile;

/// Returns the arguments with defaults, and the places that were filled.
fn filled(schema: &Value, arguments: &Value) -> (Value, Vec<String>) {
    match compile(schema).fill_defaults(&RawJson::from(arguments)) {
        Some(filled) => {
            assert!(
                filled
                    .changes
                    .iter()
                    .all(|change| change.kind == ChangeKind::Filled)
            );
            let places = filled.changes.into_iter().map(|change| change.path).collect();
            (filled.arguments.to().expect("it is JSON"), places)
        }
        None => (arguments.clone(), Vec::new()),
    }
}

fn unusable(schema: &Value) -> Vec<(String, String)> {
    let schema = compile(schema);
    let unusable = schema.unusable_defaults().iter();
    unusable.map(|it| (it.pointer.clone(), it.to_string())).collect()
}

#[test]
fn absent_members_are_filled_in_wherever_the_schema_speaks_of_them() {
    let n = json!({"type": "integer", "default": 1});
    let with_n = json!({"type": "object", "properties": {"n": n}});
    let cases = [
        // Members of the object, at any depth.
        (json!({"properties": {"n": n}}), json!({}), json!({"n": 1})),
        (
            json!({"properties": {"o": with_n}}),
            json!({"o": {}}),
            json!({"o": {"n": 1}}),
        ),
        // An absent object without a default stays absent.
        (json!({"properties": {"o": with_n}}), json!({}), json!({})),
        (
            json!({"properties": {"o": {"properties": {"n": n}, "default": {"m": 2}}}}),
            json!({}),
            json!({"o": {"m": 2, "n": 1}}),
        ),
        // Items of arrays.
        (
            json!({"properties": {"l": {"items": with_n}}}),
            json!({"l": [{}, {"n": 2}, 3]}),
            json!({"l": [{"n": 1}, {"n": 2}, 3]}),
        ),
        (
            json!({"properties": {"l": {"prefixItems": [{}, with_n], "items": {"properties": {"m": n}}}}}),
            json!({"l": [{}, {}, {}]}),
            json!({"l": [{}, {"n": 1}, {"m": 1}]}),
        ),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#",
                "properties": {"l": {"items": [with_n], "additionalItems": {"properties": {"m": n}}}}}),
            json!({"l": [{}, {}]}),
            json!({"l": [{"n": 1}, {"m": 1}]}),
        ),
        // Members by `additionalProperties`.
        (
            json!({"additionalProperties": with_n, "properties": {"p": {}}}),
            json!({"p": {}, "q": {}}),
            json!({"p": {}, "q": {"n": 1}}),
        ),
        // References: to a pointer, a percent-encoded pointer, an anchor, the document itself.
        (
            json!({"$ref": "#/$defs/o", "$defs": {"o": with_n}}),
            json!({}),
            json!({"n": 1}),
        ),
        (
            json!({"$ref": "#/$defs/a%20b", "$defs": {"a b": with_n}}),
            json!({}),
            json!({"n": 1}),
        ),
        (
            json!({"$ref": "#o", "$defs": {"o": {"$anchor": "o", "properties": {"n": n}}}}),
            json!({}),
            json!({"n": 1}),
        ),
        (
            json!({"$id": "https://example.com/tree", "properties": {"n": n, "child": {"$ref": "#"}}}),
            json!({"child": {"child": {}}}),
            json!({"child": {"child": {"n": 1}, "n": 1}, "n": 1}),
        ),
        // A default next to a reference takes precedence over that of its target.
        (
            json!({"properties": {"a": {"$ref": "#/$defs/n"}, "b": {"$ref": "#/$defs/n", "default": 2}}, "$defs": {"n": n}}),
            json!({}),
            json!({"a": 1, "b": 2}),
        ),
        // All parts of `allOf`; the nearest default counts, then the first.
        (
            json!({"properties": {"a": n}, "allOf": [
                {"properties": {"a": {"default": 2}, "b": {"default": 3}}}, {"properties": {"b": {"default": 4}}}]}),
            json!({}),
            json!({"a": 1, "b": 3}),
        ),
        (
            json!({"allOf": [{"properties": {"o": {"properties": {"n": n}}}}, {"properties": {"o": {"default": {}}}}]}),
            json!({}),
            json!({"o": {"n": 1}}),
        ),
        // An allowed `null` is a value.
        (
            json!({"properties": {"a": {"type": ["string", "null"], "default": null}}}),
            json!({}),
            json!({"a": null}),
        ),
        (
            json!({"properties": {"a": {"type": ["string", "null"], "default": "x"}}}),
            json!({"a": null}),
            json!({"a": null}),
        ),
        // Conditions (`if`) are ignored.
        (
            json!({"if": {"properties": {"n": n}}, "then": {"properties": {"n": n}}, "not": {"properties": {"n": n}, "required": ["x"]}}),
            json!({}),
            json!({}),
        ),
        // An embedded schema resource has its own references.
        (
            json!({"properties": {"o": {"$id": "https://example.com/o", "properties": {"n": n}}}}),
            json!({"o": {}}),
            json!({"o": {}}),
        ),
    ];
    for (schema, arguments, expected) in cases {
        assert_eq!(filled(&schema, &arguments).0, expected, "{schema}");
    }
}

#[test]
fn a_union_is_filled_in_only_where_one_branch_can_take_the_value() {
    let branch = |kind: &str, default: u8| json!({"type": "object", "properties": {"kind": {"const": kind}, "n": {"default": default}}, "required": ["kind"]});
    for keyword in ["anyOf", "oneOf"] {
        let union = json!({keyword: [branch("a", 1), branch("b", 2), {"type": "null"}]});
        let schema = json!({"properties": {"u": union}});
        let cases = [
            (json!({"u": {"kind": "a"}}), json!({"u": {"kind": "a", "n": 1}})),
            (json!({"u": {"kind": "b"}}), json!({"u": {"kind": "b", "n": 2}})),
            (json!({"u": {"kind": "c"}}), json!({"u": {"kind": "c"}})),
            (json!({"u": null}), json!({"u": null})),
        ];
        for (arguments, expected) in cases {
            assert_eq!(filled(&schema, &arguments).0, expected, "{keyword}");
        }
        let ambiguous =
            json!({keyword: [{"properties": {"n": {"default": 1}}}, {"properties": {"m": {"default": 2}}}]});
        assert_eq!(filled(&ambiguous, &json!({})).0, json!({}), "{keyword}");
        // A default of one branch for the member itself is ambiguous.
        let member = json!({"properties": {"n": {keyword: [{"default": 1}, {"default": 2}]}}});
        assert_eq!(filled(&member, &json!({})).0, json!({}), "{keyword}");
    }
    // 1 and 1.0 are one number, so both branches accept it.
    let numbers = json!({"anyOf": [
        {"properties": {"v": {"const": 1}, "a": {"default": 1}}}, {"properties": {"v": {"const": 1.0}, "b": {"default": 2}}}]});
    assert_eq!(filled(&numbers, &json!({"v": 1})).0, json!({"v": 1}));
}

#[test]
fn each_member_that_was_filled_in_is_told_once() {
    let schema = json!({"properties": {
        "a/b": {"default": 1},
        "o": {"default": {}, "properties": {"n": {"default": 1}}},
        "l": {"items": {"properties": {"n": {"default": 1}}}},
    }});
    let (_, places) = filled(&schema, &json!({"l": [{"n": 0}, {}]}));
    assert_eq!(places, ["/l/1/n", "/a~1b", "/o"]);
}

#[test]
fn what_is_present_keeps_its_own_text() {
    let schema =
        compile(&json!({"properties": {"a": {"default": 1}, "o": {"properties": {"n": {"default": 2}}}}}));
    let text = r#"{ "id":123456789012345678901234567890 , "o" : {"x":"\u0061"} }"#;
    let filled = schema.fill_defaults(&RawJson::parse(text).unwrap()).unwrap();
    assert_eq!(
        filled.arguments.as_str(),
        r#"{ "id":123456789012345678901234567890 , "o" : {"x":"\u0061","n":2} ,"a":1}"#
    );
}

#[test]
fn a_default_that_does_not_fit_is_reported_and_not_used() {
    let schema = json!({
        "properties": {
            "good": {"type": "integer", "default": 1},
            "null": {"type": "string", "default": null},
            "text": {"type": "integer", "default": "5"},
            "word": {"enum": ["a", "b"], "default": "c"},
            "by reference": {"$ref": "#/$defs/low", "default": 7},
            "default": {"type": "string"},
            // Absent members of the default are filled in as well.
            "lacking": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "default": 1}}, "default": {}},
            "still lacking": {"type": "object", "required": ["n", "m"], "properties": {"n": {"default": 1}}, "default": {}},
        },
        "$defs": {"low": {"maximum": 5}},
    });
    assert_eq!(
        filled(&schema, &json!({})).0,
        json!({"good": 1, "lacking": {"n": 1}})
    );
    let reported = unusable(&schema);
    let places: Vec<_> = reported.iter().map(|(place, _)| place.as_str()).collect();
    let expected = ["by reference", "null", "still lacking", "text", "word"]
        .map(|it| format!("/properties/{it}/default"));
    assert_eq!(places, expected);
    assert!(reported[3].1.contains("never filled in"), "{reported:?}");
    assert!(reported[3].1.contains("integer"), "{reported:?}");
}

#[test]
fn a_default_without_end_is_reported_and_not_used() {
    let schema = json!({
        "$ref": "#/$defs/tree",
        "$defs": {"tree": {"properties": {"child": {"$ref": "#/$defs/tree", "default": {}}, "size": {"default": 1}}}},
    });
    assert_eq!(filled(&schema, &json!({})).0, json!({"size": 1}));
    assert_eq!(unusable(&schema)[0].0, "/$defs/tree/properties/child/default");
    // Through another subschema, and a default that only leads to it.
    let schema = json!({
        "properties": {"a": {"$ref": "#/$defs/a", "default": {}}},
        "$defs": {
            "a": {"properties": {"b": {"$ref": "#/$defs/b", "default": {}}}},
            "b": {"properties": {"a": {"$ref": "#/$defs/a", "default": {}}, "n": {"default": 1}}},
        },
    });
    let (arguments, _) = filled(&schema, &json!({}));
    assert_eq!(filled(&schema, &arguments), (arguments.clone(), vec![]));
    assert_eq!(arguments, json!({"a": {}}));
    assert_eq!(unusable(&schema).len(), 2);
}

#[test]
fn defaults_that_are_too_large_together_are_left_out_as_a_whole() {
    let large = "x".repeat(1000);
    let schema = compile(
        &json!({"properties": {"a": {"default": 1}, "l": {"items": {"properties": {"t": {"default": large}}}}}}),
    );
    let arguments = |n: usize| RawJson::from(json!({"l": vec![json!({}); n]}));
    assert_eq!(schema.fill_defaults(&arguments(100)).unwrap().changes.len(), 101);
    assert_eq!(schema.fill_defaults(&arguments(1000)), None);
}

/// Cases in which Ajv 8.20.0 with `useDefaults` fills in the arguments and then accepts them.
#[test]
fn defaults_are_filled_in_as_by_ajv() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("../fixtures/ajv_defaults.json")).expect("it is JSON");
    assert_eq!(cases.len(), 120);
    for case in cases {
        let (came, _) = filled(&case["schema"], &case["arguments"]);
        assert_eq!(came, case["filled"], "{}", case["schema"]);
    }
}

/// Strategy of subschemas with a fitting value.
fn subschema() -> impl Strategy<Value = (Value, Value)> {
    let leaf = prop_oneof![
        any::<i16>().prop_map(|n| (json!({"type": "integer"}), json!(n))),
        "[a-z]{0,3}".prop_map(|s| (json!({"type": "string"}), json!(s))),
        Just((json!({"type": ["boolean", "null"]}), json!(null))),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let member = (inner.clone(), 0..8_u8);
        prop_oneof![
            3 => prop::collection::btree_map("[a-c/~]{1,2}", member, 0..5).prop_map(object),
            1 => inner.clone().prop_map(|(schema, value)| (json!({"items": schema}), json!([value, value, 7]))),
            1 => inner.prop_map(|(schema, value)| (json!({"anyOf": [{"type": "null"}, schema]}), value)),
        ]
    })
}

/// Strategy of objects whose members may be absent, have fitting or unusable defaults, and are declared in a part of
/// `allOf`.
fn object(members: std::collections::BTreeMap<String, ((Value, Value), u8)>) -> (Value, Value) {
    let (mut own, mut part, mut present) = (Map::new(), Map::new(), Map::new());
    for (key, ((mut schema, value), dice)) in members {
        if dice & 1 == 1 {
            present.insert(key.clone(), value.clone());
        }
        if dice > 1 {
            let default = if dice == 7 { json!([[]]) } else { value };
            schema["default"] = default;
        }
        if dice == 4 { &mut part } else { &mut own }.insert(key, schema);
    }
    (
        json!({"type": "object", "properties": own, "allOf": [{"properties": part}]}),
        Value::Object(present),
    )
}

/// Returns `true` if every value of `before` is in `after` in the same place.
fn keeps(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => before
            .iter()
            .all(|(key, value)| after.get(key).is_some_and(|after| keeps(value, after))),
        (Value::Array(before), Value::Array(after)) => {
            before.len() == after.len()
                && before
                    .iter()
                    .zip(after)
                    .all(|(before, after)| keeps(before, after))
        }
        (before, after) => before == after,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(11), failure_persistence: None, ..ProptestConfig::default() })]

    /// Filling only adds members, adds none in a second run, and keeps arguments valid.
    #[test]
    fn filling_is_idempotent_and_changes_no_present_member((schema, value) in subschema()) {
        let (schema, arguments) = (json!({"properties": {"v": schema}}), json!({"v": value}));
        let compiled = compile(&schema);
        let (once, places) = filled(&schema, &arguments);
        prop_assert!(keeps(&arguments, &once), "{} became {}", arguments, once);
        prop_assert_eq!(places.is_empty(), once == arguments);
        prop_assert_eq!(filled(&schema, &once), (once.clone(), vec![]), "{}", schema);
        prop_assert!(compiled.check(&arguments).is_err() || compiled.check(&once).is_ok(), "{} {}", schema, once);
    }
}
