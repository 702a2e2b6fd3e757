//! Compatibility of versions of schemas: proofs, disproofs with reasons, and bounds for hostile schemas.

use std::cell::Cell;

use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use serde_json::{Map, Value, json};
use tool_schema::{
    Compatibility, RawJson, Schema, ToolSchemas, VersionBump, compatibility, output_compatibility,
    required_bump,
};

fn raw(value: &Value) -> RawJson {
    RawJson::parse(value.to_string()).expect("it is JSON")
}

/// Returns the verdict as text: `compatible`, the reasons, or `unproven: ..`.
fn verdict(compatibility: Compatibility) -> String {
    match compatibility {
        Compatibility::Compatible => "compatible".to_owned(),
        Compatibility::Breaking(reasons) => {
            let reasons: Vec<_> = reasons.iter().map(ToString::to_string).collect();
            reasons.join("; ")
        }
        Compatibility::Unproven(reason) => format!("unproven: {reason}"),
        other => panic!("{other:?}"),
    }
}

fn object(properties: Value, required: &[&str]) -> Value {
    let mut schema = json!({"type": "object", "required": required});
    schema["properties"] = properties;
    schema
}

#[test]
fn the_usual_changes_of_arguments() {
    let base = object(json!({"a": {"type": "string"}, "n": {"type": "integer"}}), &["a"]);
    for (new, expected) in [
        (base.clone(), "compatible"),
        (
            json!({"required": ["a"], "properties": base["properties"], "type": "object"}),
            "compatible",
        ),
        (
            object(
                json!({"a": {"type": "string", "description": "d"}, "n": {"type": "integer"}}),
                &["a"],
            ),
            "compatible",
        ),
        (
            object(json!({"a": {"type": "string"}, "n": {"type": "number"}}), &[]),
            "compatible",
        ),
        (object(base["properties"].clone(), &["a", "n"]), "requires `n`"),
        (
            object(json!({"a": {"type": "string"}, "n": {"type": "string"}}), &["a"]),
            "`/properties/n` narrows the type from integer to string",
        ),
        (
            object(
                json!({"a": {"enum": ["x", "y"]}, "n": {"type": "integer"}}),
                &["a"],
            ),
            "`/properties/a` limits the values to a list",
        ),
        (
            object(
                json!({"a": {"type": "string", "minLength": 3}, "n": {"type": "integer"}}),
                &["a"],
            ),
            "`/properties/a` tightens `minLength` from none to 3",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false}),
            "has no property `n` any more; refuses properties that it does not name",
        ),
    ] {
        let verdict = verdict(compatibility(&raw(&base), &raw(&new)));
        // A counterexample may follow.
        assert!(verdict.starts_with(expected), "{new}: {verdict}");
    }
}

/// A disproof that the library does not find is found by a counterexample.
#[test]
fn a_counterexample_decides_what_the_proof_leaves_open() {
    let number = object(json!({"n": {"type": "number"}}), &[]);
    let integer = object(json!({"n": {"type": "integer"}}), &[]);
    let reasons = verdict(compatibility(&raw(&number), &raw(&integer)));
    assert!(
        reasons.starts_with("`/properties/n` narrows the type from number to integer"),
        "{reasons}"
    );
    assert_eq!(
        verdict(compatibility(&raw(&integer), &raw(&number))),
        "compatible"
    );
}

#[test]
fn an_enum_names_the_lost_values() {
    let values = |values: Value| raw(&object(json!({"u": {"enum": values}}), &[]));
    let (old, new) = (values(json!(["c", "f", "k"])), values(json!(["c", "r"])));
    assert_eq!(
        verdict(compatibility(&old, &new)),
        r#"`/properties/u` has no value "f", "k" any more"#
    );
}

/// Results are compared in the other direction.
#[test]
fn results_may_become_narrower() {
    let wide = raw(&object(json!({"a": {"type": ["string", "null"]}}), &[]));
    let narrow = raw(&object(json!({"a": {"type": "string"}}), &["a"]));
    assert_eq!(
        verdict(output_compatibility(Some(&wide), Some(&narrow))),
        "compatible"
    );
    let reasons = verdict(output_compatibility(Some(&narrow), Some(&wide)));
    assert_eq!(
        reasons,
        "does not guarantee `a` any more; `/properties/a` widens the type from string to string or null"
    );
    assert_eq!(verdict(output_compatibility(None, Some(&narrow))), "compatible");
    assert_eq!(
        verdict(output_compatibility(Some(&narrow), None)),
        "has no output schema any more"
    );
    assert_eq!(verdict(output_compatibility(None, None)), "compatible");
}

#[test]
fn a_version_needs_the_bump_of_its_schemas() {
    let (wide, narrow) = (
        raw(&json!({"type": "object"})),
        raw(&object(json!({"a": {"type": "string"}}), &["a"])),
    );
    for (old, new, expected) in [
        ((&wide, None), (&wide, None), VersionBump::Patch),
        ((&narrow, None), (&wide, None), VersionBump::Minor),
        ((&wide, None), (&narrow, None), VersionBump::Major),
        ((&wide, None), (&wide, Some(&narrow)), VersionBump::Minor),
        ((&wide, Some(&narrow)), (&wide, None), VersionBump::Major),
        ((&wide, Some(&wide)), (&wide, Some(&narrow)), VersionBump::Minor),
        ((&wide, Some(&narrow)), (&wide, Some(&wide)), VersionBump::Major),
    ] {
        let (old, new) = (ToolSchemas::new(old.0, old.1), ToolSchemas::new(new.0, new.1));
        assert_eq!(required_bump(old, new), expected, "{old:?} {new:?}");
    }
}

#[test]
fn what_cannot_be_compared_is_not_proven() {
    let plain = raw(&json!({"type": "object"}));
    for (new, reason) in [
        (json!({"type": "objekt"}), "the new schema is not usable"),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {}}),
            "drafts",
        ),
        (
            json!({"type": "object", "unevaluatedProperties": false, "dependencies": {}}),
            "keywords",
        ),
    ] {
        let text = verdict(compatibility(&plain, &raw(&new)));
        let is_unproven = text.starts_with("unproven: ") && text.contains(reason);
        // A disproof by a counterexample is as good.
        assert!(
            is_unproven || text.contains("refuses arguments that were accepted"),
            "{new}: {text}"
        );
    }
}

/// Schemas of a server that wants to keep the registry busy come to an end, and nothing is proven.
#[test]
fn hostile_schemas_come_to_an_end() {
    let choices = |n: usize, keyword: &str| {
        let branch = |i: usize| json!({"properties": {format!("p{i}"): {"type": "string", "minLength": i}}, "required": [format!("p{}", (i * 7) % n)]});
        json!({"type": "object", keyword: (0..n).map(branch).collect::<Vec<_>>()})
    };
    let product = |n: usize| {
        let pair =
            |i: usize| json!({"anyOf": [{"required": [format!("a{i}")]}, {"required": [format!("b{i}")]}]});
        json!({"type": "object", "allOf": (0..n).map(pair).collect::<Vec<_>>()})
    };
    let mut nested = json!({"type": "string"});
    for i in 0..20 {
        nested = json!({"type": "object", "properties": {"p": nested}, "anyOf": [{"required": ["p"]}, {"minProperties": i}]});
    }
    let wide = json!({"type": "object", "properties": (0..1500).map(|i| (format!("p{i}"), json!({"type": "string"}))).collect::<Map<_, _>>()});
    let recursive = json!({"$defs": {"n": {"type": "object", "properties": {"l": {"$ref": "#/$defs/n"}, "r": {"$ref": "#/$defs/n"}}}}, "$ref": "#/$defs/n"});
    let all = [
        choices(80, "oneOf"),
        choices(90, "anyOf"),
        product(40),
        nested,
        wide,
        recursive,
        json!({"type": "object", "properties": {"p": {"pattern": "^(a|b|c){1,200}(d|e){1,200}$"}}}),
    ];
    for (old, new) in all.iter().zip(all.iter().cycle().skip(1)) {
        // A verdict is reached, and nothing is proven that is not so.
        assert!(
            !compatibility(&raw(old), &raw(new)).is_compatible(),
            "{old} -> {new}"
        );
        assert!(compatibility(&raw(old), &raw(old)).is_compatible());
    }
}

/// Returns small schemas of the kinds that tools have.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "integer"})),
        Just(json!({"type": "number"})),
        Just(json!({"type": ["string", "null"]})),
        Just(json!({"type": "boolean"})),
        Just(json!(true)),
        Just(json!({})),
        (0u8..4, 0u8..4)
            .prop_map(|(low, more)| json!({"type": "integer", "minimum": low, "maximum": low + more})),
        (0u8..3, 0u8..3)
            .prop_map(|(low, more)| json!({"type": "string", "minLength": low, "maxLength": low + more})),
        prop::sample::subsequence(
            vec![json!("a"), json!("b"), json!(1), json!(null), json!(0.5)],
            1..4
        )
        .prop_map(|values| json!({"enum": values})),
        Just(json!({"const": "a"})),
        Just(json!({"type": "string", "pattern": "^a"})),
        Just(json!({"type": "number", "multipleOf": 0.5})),
    ];
    leaf.prop_recursive(2, 10, 3, |inner| {
        let names = || prop::sample::subsequence(vec!["a", "b", "c"], 0..=3);
        let closed = prop_oneof![Just(None), Just(Some(json!(false))), Just(Some(json!({"type": "string"})))];
        let objects = (prop::collection::vec(inner.clone(), 3), names(), names(), closed).prop_map(
            |(schemas, named, required, additional)| {
                let properties: Map<String, Value> =
                    named.iter().zip(schemas).map(|(name, schema)| ((*name).to_owned(), schema)).collect();
                let mut schema = json!({"type": "object", "properties": properties, "required": required});
                if let Some(additional) = additional {
                    schema["additionalProperties"] = additional;
                }
                schema
            },
        );
        prop_oneof![
            4 => objects,
            1 => (inner.clone(), 0u8..3).prop_map(|(items, n)| json!({"type": "array", "items": items, "minItems": n})),
            1 => prop::collection::vec(inner.clone(), 1..3).prop_map(|all| json!({"anyOf": all})),
            1 => prop::collection::vec(inner.clone(), 1..3).prop_map(|all| json!({"oneOf": all})),
            1 => prop::collection::vec(inner.clone(), 1..3).prop_map(|all| json!({"allOf": all})),
            1 => inner.prop_map(|one| json!({"not": one})),
        ]
    })
}

/// Returns the schema with one change, so that pairs are close to each other.
fn changed(schema: &Value, change: u8) -> Value {
    let mut schema = schema.clone();
    let Some(members) = schema.as_object_mut() else {
        return schema;
    };
    match change {
        0 => drop(members.remove("required")),
        1 => drop(members.insert("required".to_owned(), json!(["a", "b"]))),
        2 => drop(members.remove("additionalProperties")),
        3 => drop(members.insert("additionalProperties".to_owned(), json!(false))),
        4 => drop(members.insert("type".to_owned(), json!(["object", "string", "number", "null"]))),
        5 => drop(members.remove("type")),
        6 => drop(members.insert("description".to_owned(), json!("d"))),
        7 => {
            if let Some(a) = members.get_mut("properties").and_then(|all| all.get_mut("a")) {
                *a = json!(true);
            }
        }
        8 => drop(members.insert("minProperties".to_owned(), json!(1))),
        9 => return json!({"anyOf": [schema, {"type": "null"}]}),
        10 => return json!({"allOf": [schema, {"type": ["object", "array"]}]}),
        _ => {}
    }
    schema
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-3i8..6).prop_map(Value::from),
        Just(json!(0.5)),
        Just(json!(1.0)),
        "[ab]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let name = prop::sample::select(vec!["a", "b", "c", "d"]).prop_map(str::to_owned);
        prop_oneof![
            3 => prop::collection::hash_map(name, inner.clone(), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
            1 => prop::collection::vec(inner, 0..3).prop_map(Value::from),
        ]
    })
}

/// Tests that pairs that are called compatible are so for all values. Enough pairs are called so for that to mean something.
#[test]
fn compatible_versions_accept_what_the_old_one_accepts() {
    const CASES: u32 = 100;
    let n_compatible = Cell::new(0_u32);
    let pair = (schema(), 0u8..12, schema(), prop::bool::weighted(0.8));
    let mut runner = TestRunner::new(Config::with_cases(CASES));
    let result = runner.run(
        &(pair, prop::collection::vec(value(), 40)),
        |((old, change, other, is_close), values)| {
            let new = if is_close { changed(&old, change) } else { other };
            let (old_raw, new_raw) = (raw(&old), raw(&new));
            let verdict = compatibility(&old_raw, &new_raw);
            n_compatible.set(n_compatible.get() + u32::from(verdict.is_compatible()));
            let (old_schema, new_schema) = (Schema::compile(&old_raw), Schema::compile(&new_raw));
            let (Ok(old_schema), Ok(new_schema)) = (old_schema, new_schema) else {
                return Ok(());
            };
            for value in &values {
                if old_schema.check(value).is_ok() && new_schema.check(value).is_err() {
                    prop_assert!(!verdict.is_compatible(), "{old} -> {new}: {value}");
                }
            }
            Ok(())
        },
    );
    result.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(
        n_compatible.get() > CASES / 10,
        "{} of {CASES}",
        n_compatible.get()
    );
}
