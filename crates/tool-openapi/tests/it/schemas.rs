//! Schemas of a document as JSON Schema 2020-12.

use proptest::{prelude::*, test_runner::RngSeed};
use serde_json::{Value, json};
use tool_openapi::{ImportOptions, ImportedApi};
use tool_schema::Schema;

use crate::support::{document, imported, reasons, schema_of};

/// Imports an operation whose body is one argument of this schema.
fn with_schema(version: &str, schema: &Value, schemas: &Value) -> ImportedApi {
    let body = json!({"required": true, "content": {"application/json": {"schema": {"type": "array", "items": schema}}}});
    let operation = json!({"operationId": "it", "requestBody": body, "responses": {}});
    let mut document = document(&json!({"/a": {"post": operation}}));
    document["openapi"] = json!(version);
    document["components"] = json!({"schemas": schemas});
    imported(&document, &ImportOptions::new())
}

fn normalized(version: &str, schema: &Value) -> Value {
    let api = with_schema(version, schema, &json!({}));
    assert_eq!(reasons(&api).len(), 0, "{:?}", reasons(&api));
    schema_of(&api, "it")["properties"]["body"]["items"].clone()
}

#[test]
fn older_forms_become_those_of_2020_12() {
    for (schema, expected) in [
        (
            json!({"type": "string", "nullable": true}),
            json!({"type": ["string", "null"]}),
        ),
        (
            json!({"type": "string", "nullable": true, "enum": ["a"]}),
            json!({"type": ["string", "null"], "enum": ["a", null]}),
        ),
        (
            json!({"type": "string", "nullable": false}),
            json!({"type": "string"}),
        ),
        (
            json!({"nullable": true, "description": "d", "allOf": [{"type": "object"}]}),
            json!({"description": "d", "anyOf": [{"allOf": [{"type": "object"}]}, {"type": "null"}]}),
        ),
        (
            json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true}),
            json!({"type": "integer", "exclusiveMinimum": 1}),
        ),
        (
            json!({"type": "integer", "minimum": 1, "exclusiveMinimum": false}),
            json!({"type": "integer", "minimum": 1}),
        ),
        (
            json!({"type": "integer", "maximum": 9, "exclusiveMaximum": true}),
            json!({"type": "integer", "exclusiveMaximum": 9}),
        ),
        (
            json!({"type": "integer", "exclusiveMinimum": 1}),
            json!({"type": "integer", "exclusiveMinimum": 1}),
        ),
        (
            json!({"type": "string", "example": "x", "xml": {"name": "y"}, "x-own": 1}),
            json!({"type": "string", "examples": ["x"]}),
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "readOnly": true}, "b": {"type": "string", "required": true}}, "required": ["a", "b"]}),
            json!({"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}),
        ),
        (
            json!({"type": "object", "properties": {"nullable": {"type": "string"}, "example": {"const": {"nullable": true}}}}),
            json!({"type": "object", "properties": {"nullable": {"type": "string"}, "example": {"const": {"nullable": true}}}}),
        ),
    ] {
        for version in ["3.0.3", "3.1.0", "3.2.0"] {
            assert_eq!(normalized(version, &schema), expected, "{version} {schema}");
        }
    }
}

#[test]
fn references_that_lead_in_circles_stay_references() {
    let schemas = json!({
        "Node": {"type": "object", "properties": {"value": {"type": "integer"}, "next": {"$ref": "#/components/schemas/Node"}, "other": {"$ref": "#/components/schemas/a~1b"}}},
        "a/b": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}},
        "Unused": {"type": "string"},
    });
    let api = with_schema("3.0.3", &json!({"$ref": "#/components/schemas/Node"}), &schemas);
    let schema = schema_of(&api, "it");
    let names: Vec<&String> = schema["$defs"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["Node", "a_1b"]);
    let compiled = Schema::compile_value(&schema).unwrap();
    let nested =
        |value: Value| json!({"body": [{"value": 1, "next": {"next": {"other": [{"value": value}]}}}]});
    assert!(compiled.check(&nested(json!(1))).is_ok());
    assert!(compiled.check(&nested(json!("1"))).is_err());
}

#[test]
fn schemas_whose_references_end_alike_stay_apart() {
    let schemas = json!({
        "A": {"type": "object", "properties": {"value": {"type": "string"}}},
        "B": {"type": "object", "properties": {"value": {"type": "integer"}}},
        "value:2": {"type": "boolean"},
    });
    let references = json!({"type": "object", "properties": {
        "a": {"$ref": "#/components/schemas/A/properties/value"},
        "b": {"$ref": "#/components/schemas/B/properties/value"},
        "c": {"$ref": "#/components/schemas/value:2"},
    }});
    let api = with_schema("3.0.3", &references, &schemas);
    let compiled = Schema::compile_value(&schema_of(&api, "it")).unwrap();
    assert!(
        compiled
            .check(&json!({"body": [{"a": "x", "b": 1, "c": true}]}))
            .is_ok()
    );
    for wrong in [json!({"a": 1}), json!({"b": "x"}), json!({"c": 1})] {
        assert!(compiled.check(&json!({"body": [wrong]})).is_err());
    }
}

#[test]
fn a_reference_out_of_the_document_is_refused() {
    for (reference, reason) in [
        (
            "other.yaml#/Pet",
            "`other.yaml#/Pet` leads out of the document, and nothing is fetched",
        ),
        ("https://example.com/pet.json", "leads out of the document"),
        ("file:///etc/passwd", "leads out of the document"),
        (
            "#/components/schemas/None",
            "`#/components/schemas/None` leads nowhere",
        ),
        ("#anchor", "is no JSON Pointer"),
    ] {
        let api = with_schema("3.1.0", &json!({"$ref": reference}), &json!({}));
        assert!(reasons(&api)["POST /a"].contains(reason), "{:?}", reasons(&api));
    }
}

#[test]
fn keywords_beside_a_reference_count_since_3_1() {
    let schemas = json!({"Name": {"type": "string"}});
    let schema = json!({"$ref": "#/components/schemas/Name", "maxLength": 2, "description": "d"});
    let items = |version: &str| {
        let api = with_schema(version, &schema, &schemas);
        schema_of(&api, "it")["properties"]["body"]["items"].clone()
    };
    assert_eq!(
        items("3.0.3"),
        json!({"$ref": "#/$defs/Name", "description": "d"})
    );
    assert_eq!(
        items("3.1.0"),
        json!({"$ref": "#/$defs/Name", "maxLength": 2, "description": "d"})
    );
}

#[test]
fn a_schema_that_is_none_is_a_reason() {
    let api = with_schema("3.0.3", &json!({"type": "any"}), &json!({}));
    assert!(
        reasons(&api)["POST /a"].starts_with("its input schema: "),
        "{:?}",
        reasons(&api)
    );
    let api = with_schema("3.0.3", &json!({"type": "string", "pattern": "("}), &json!({}));
    assert!(
        reasons(&api)["POST /a"].contains("regular expression"),
        "{:?}",
        reasons(&api)
    );
}

/// Values that the schemas of the next test tell apart.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        (-3..4_i32).prop_map(|n| json!(n)),
        Just(json!("a")),
        Just(json!("bb")),
        Just(json!(true))
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::btree_map("[pq]", inner, 0..3).prop_map(|map| json!(map)),
        ]
    })
}

/// Schemas of OpenAPI 3.0 without `nullable`: draft 4 judges them alike.
fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string", "maxLength": 1})),
        (-2..3_i32, any::<bool>()).prop_map(
            |(n, exclusive)| json!({"type": "integer", "minimum": n, "exclusiveMinimum": exclusive})
        ),
        (-2..3_i32, any::<bool>()).prop_map(
            |(n, exclusive)| json!({"type": "number", "maximum": n, "exclusiveMaximum": exclusive})
        ),
        Just(json!({"enum": ["a", 1]})),
        Just(json!({})),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner
                .clone()
                .prop_map(|items| json!({"type": "array", "items": items})),
            (inner.clone(), inner.clone()).prop_map(
                |(p, q)| json!({"type": "object", "properties": {"p": p, "q": q}, "required": ["p"]})
            ),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"anyOf": [a, b]})),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"allOf": [a, {"not": b}]})),
            inner.prop_map(|all| json!({"type": "object", "additionalProperties": all})),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(22), cases: 200, ..ProptestConfig::default() })]

    /// A schema of OpenAPI 3.0 is one of draft 5, which takes `exclusiveMinimum` as draft 4 does.
    #[test]
    fn a_rewritten_schema_accepts_what_draft_4_accepts(schema in schemas(), value in values()) {
        let mut by_draft = schema.clone();
        by_draft["$schema"] = json!("http://json-schema.org/draft-04/schema#");
        let before = Schema::compile_value(&by_draft).unwrap();
        let api = with_schema("3.0.3", &schema, &json!({}));
        let after = Schema::compile_value(&schema_of(&api, "it")).unwrap();
        prop_assert_eq!(after.check(&json!({"body": [value]})).is_ok(), before.check(&value).is_ok());
    }
}

#[test]
fn a_large_schema_loses_the_descriptions_of_its_definitions() {
    let member = |index: usize| {
        let description = "A very long text about a member. ".repeat(40);
        (
            format!("m{index}"),
            json!({"type": "string", "description": description, "enum": ["description"]}),
        )
    };
    let members: serde_json::Map<String, Value> = (0..100).map(member).collect();
    let schemas = json!({"Large": {"type": "object", "properties": members}});
    let api = with_schema("3.0.3", &json!({"$ref": "#/components/schemas/Large"}), &schemas);
    let schema = schema_of(&api, "it");
    assert_eq!(
        schema["$defs"]["Large"]["properties"]["m7"],
        json!({"type": "string", "enum": ["description"]})
    );
    assert!(
        api.tools[0].warnings[0].contains("is large"),
        "{:?}",
        api.tools[0].warnings
    );
    let members: serde_json::Map<String, Value> =
        (0..3000).map(|index| (format!("m{index}"), json!({}))).collect();
    let schemas = json!({"Large": {"type": "object", "properties": members}});
    let api = with_schema("3.0.3", &json!({"$ref": "#/components/schemas/Large"}), &schemas);
    assert!(
        reasons(&api)["POST /a"].contains("too large"),
        "{:?}",
        reasons(&api)
    );
}
