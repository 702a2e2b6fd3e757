//! The check without compiling: its verdict is that of compiling.

use proptest::{prelude::*, test_runner::RngSeed};
use raw_json::RawJson;
use serde_json::{Value, json};
use tool_schema::{Schema, SchemaWarning, verify};

fn assert_same(schema: &Value) {
    let raw = RawJson::from(schema);
    let (checked, compiled) = (verify(&raw), Schema::compile(&raw));
    let has_older_forms = compiled.map(|schema| schema.warnings().contains(&SchemaWarning::OlderForms));
    let keeps_rules = matches!(has_older_forms, Ok(false));
    assert_eq!(
        checked.is_ok(),
        keeps_rules,
        "{checked:?} {has_older_forms:?}: {schema}"
    );
}

#[test]
fn real_schemas_and_those_of_the_suite_get_the_same_verdict() {
    let texts = [
        include_str!("../fixtures/schemas.jsonl"),
        include_str!("../fixtures/calls.jsonl"),
        include_str!("../fixtures/suite.jsonl"),
    ];
    for row in texts.iter().flat_map(|text| text.lines()) {
        let row: Value = serde_json::from_str(row).unwrap();
        let schema = row.get("input_schema").or_else(|| row.get("schema")).unwrap();
        assert_same(schema);
        if let Value::Object(members) = schema {
            for draft in [
                "http://json-schema.org/draft-04/schema#",
                "http://json-schema.org/draft-07/schema",
                "https://json-schema.org/draft/2020-12/schema",
            ] {
                let mut members = members.clone();
                members.insert("$schema".to_owned(), json!(draft));
                assert_same(&Value::Object(members));
            }
        }
    }
}

/// Values that are right for some keywords and wrong for others.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        Just(json!(-1)),
        Just(json!(2)),
        Just(json!(2.0)),
        Just(json!(1.5)),
        Just(json!("string")),
        Just(json!("any")),
        Just(json!(["string", "null"])),
        Just(json!(["a", "a"])),
        Just(json!([])),
        Just(json!({})),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::btree_map(keywords(), inner, 0..3).prop_map(|map| json!(map)),
        ]
    })
}

fn keywords() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "not",
        "anyOf",
        "oneOf",
        "allOf",
        "enum",
        "const",
        "title",
        "description",
        "$comment",
        "format",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "minimum",
        "exclusiveMaximum",
        "minLength",
        "maxItems",
        "minProperties",
        "uniqueItems",
        "x-own",
        "other",
    ])
    .prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(22), cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_schema_gets_the_same_verdict(members in prop::collection::btree_map(keywords(), values(), 0..5), draft in 0..3_usize) {
        let mut schema = json!(members);
        if let Some(draft) = [None, Some("http://json-schema.org/draft-07/schema#"), Some("http://json-schema.org/draft-04/schema#")][draft] {
            schema["$schema"] = json!(draft);
        }
        assert_same(&schema);
    }
}

/// A schema that forgot to name draft 4 checks as under draft 4, and keeps its text.
#[test]
fn forms_of_older_drafts_are_read() {
    for (schema, value, fits) in [
        (json!({"minimum": 0, "exclusiveMinimum": true}), json!(0), false),
        (json!({"minimum": 0, "exclusiveMinimum": true}), json!(1), true),
        (json!({"minimum": 0, "exclusiveMinimum": false}), json!(0), true),
        (json!({"maximum": 9, "exclusiveMaximum": true}), json!(9), false),
        (
            json!({"items": [{"type": "string"}], "additionalItems": {"type": "integer"}}),
            json!(["a", 1]),
            true,
        ),
        (
            json!({"items": [{"type": "string"}], "additionalItems": false}),
            json!(["a", 1]),
            false,
        ),
        (json!({"items": [{"type": "string"}]}), json!([1]), false),
        (
            json!({"properties": {"n": {"anyOf": [{"minimum": 1, "exclusiveMinimum": true}]}}}),
            json!({"n": 1}),
            false,
        ),
        (
            json!({"$defs": {"n": {"minimum": 1, "exclusiveMinimum": true}}, "$ref": "#/$defs/n"}),
            json!(1),
            false,
        ),
    ] {
        let raw = RawJson::from(&schema);
        let compiled = Schema::compile(&raw).unwrap();
        assert_eq!(compiled.check(&value).is_ok(), fits, "{schema} {value}");
        assert_eq!(compiled.warnings(), [SchemaWarning::OlderForms], "{schema}");
        assert_eq!(compiled.raw(), &raw);
        assert!(verify(&raw).is_err(), "{schema}");
        let mut by_draft = schema.clone();
        by_draft["$schema"] = json!("http://json-schema.org/draft-04/schema#");
        if !schema.to_string().contains("$defs") {
            let by_draft = Schema::compile_value(&by_draft).unwrap();
            assert_eq!(by_draft.check(&value).is_ok(), fits, "{schema} {value}");
            assert_eq!(by_draft.warnings(), []);
        }
    }
    assert!(Schema::compile_value(&json!({"exclusiveMaximum": true})).is_err());
    let broken = json!({"minimum": "0", "exclusiveMinimum": true});
    let error = Schema::compile_value(&broken).unwrap_err();
    assert!(error.to_string().contains("must be"), "{error}");
}
