use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::{CheckError, CheckJson};
use tool_schema::{LazySchema, Schema, SchemaErrorKind, SchemaWarning, any_object};

use crate::{compile, complaint};

#[test]
fn drafts_differ_as_they_should() {
    // Columns: `$schema`, schema, value that the draft accepts, value that it refuses.
    let cases = [
        (
            "http://json-schema.org/draft-04/schema#",
            json!({"minimum": 1, "exclusiveMinimum": true}),
            json!(2),
            json!(1),
        ),
        (
            "http://json-schema.org/draft-06/schema#",
            json!({"exclusiveMinimum": 1}),
            json!(2),
            json!(1),
        ),
        (
            "http://json-schema.org/draft-07/schema#",
            json!({"if": {"type": "string"}, "then": {"maxLength": 1}}),
            json!("a"),
            json!("ab"),
        ),
        (
            "https://json-schema.org/draft-07/schema",
            json!({"items": [{"type": "string"}]}),
            json!(["a"]),
            json!([1]),
        ),
        (
            "https://json-schema.org/draft/2019-09/schema",
            json!({"dependentRequired": {"a": ["b"]}}),
            json!({"a": 1, "b": 2}),
            json!({"a": 1}),
        ),
        (
            "https://json-schema.org/draft/2020-12/schema",
            json!({"prefixItems": [{"type": "string"}]}),
            json!(["a"]),
            json!([1]),
        ),
    ];
    for (uri, mut schema, good, bad) in cases {
        schema["$schema"] = json!(uri);
        let compiled = compile(&schema);
        assert_eq!(compiled.warnings(), [], "{uri}");
        assert_eq!(compiled.check(&good), Ok(()), "{uri}");
        assert!(compiled.check(&bad).is_err(), "{uri}");
    }
}

#[test]
fn a_schema_without_a_draft_is_read_as_the_newest() {
    assert!(complaint(&json!({"prefixItems": [{"type": "string"}]}), &json!([1])).is_some());
}

#[test]
fn an_unknown_draft_is_read_as_the_newest_with_a_warning() {
    for uri in [
        json!("https://example.com/dialect"),
        json!("http://json-schema.org/draft-99/schema#"),
        json!(7),
    ] {
        let schema = compile(&json!({"$schema": uri, "prefixItems": [{"type": "string"}]}));
        assert!(
            matches!(schema.warnings(), [SchemaWarning::UnknownDialect(_)]),
            "{uri}"
        );
        assert!(schema.check(&json!([1])).is_err());
        assert!(schema.check(&json!(["a"])).is_ok());
    }
}

#[test]
fn unusable_schemas_are_refused_with_the_reason() {
    use SchemaErrorKind::{Invalid, NotASchema};
    let cases = [
        ("[]", NotASchema, "a schema must be an object or a boolean"),
        ("null", NotASchema, "a schema must be an object or a boolean"),
        (r#"{"type": "strnig"}"#, Invalid, "strnig"),
        (r#"{"minimum": "1"}"#, Invalid, "minimum"),
        (
            r#"{"properties": {"a": {"minimum": 1, "exclusiveMinimum": true}}}"#,
            Invalid,
            "exclusiveMinimum",
        ),
        (r##"{"$ref": "#/nowhere"}"##, Invalid, "nowhere"),
        (r#"{"pattern": "("}"#, Invalid, "("),
        (
            r#"{"$ref": "https://example.com/s.json"}"#,
            Invalid,
            "example.com",
        ),
        (r#"{"$ref": "file:///etc/passwd"}"#, Invalid, "file:///etc/passwd"),
        (
            r#"{"$id": "https://example.com/a.json", "$ref": "b.json"}"#,
            Invalid,
            "b.json",
        ),
    ];
    for (text, kind, part) in cases {
        let error = Schema::compile(&RawJson::parse(text).unwrap()).unwrap_err();
        assert_eq!(error.kind(), kind, "{text}: {error}");
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}

#[test]
fn an_error_in_a_schema_has_its_place() {
    let error = Schema::compile(&RawJson::from(json!({"properties": {"a": {"type": 5}}}))).unwrap_err();
    assert_eq!(error.pointer(), "/properties/a/type");
}

#[test]
fn a_duplicate_key_is_a_warning() {
    let raw = RawJson::parse(r#"{"type": "string", "type": "object"}"#).unwrap();
    let schema = Schema::compile(&raw).unwrap();
    assert!(matches!(schema.warnings(), [SchemaWarning::DuplicateKey(_)]));
    assert!(schema.check(&json!({})).is_ok());
}

#[test]
fn booleans_and_the_default_are_schemas() {
    assert!(compile(&Value::Bool(true)).check(&json!(1)).is_ok());
    assert!(compile(&Value::Bool(false)).check(&json!(1)).is_err());
    let any = Schema::compile(&any_object()).unwrap();
    assert!(any.check(&json!({"a": 1})).is_ok());
    assert!(any.check(&json!([])).is_err());
}

#[test]
fn formats_are_remarks_in_every_draft() {
    for uri in [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-07/schema#",
    ] {
        let schema = compile(&json!({"$schema": uri, "type": "string", "format": "email"}));
        assert!(schema.check(&json!("not an address")).is_ok(), "{uri}");
    }
}

#[test]
fn a_schema_may_refer_to_a_drafts_own_schema() {
    let schema = compile(&json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}));
    assert!(schema.check(&json!({"type": "string"})).is_ok());
    assert!(schema.check(&json!({"type": 5})).is_err());
}

#[test]
fn references_of_every_spelling_are_followed() {
    let cases = [
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}),
        json!({"$ref": "#a", "$defs": {"x": {"$anchor": "a", "type": "string"}}}),
        json!({"$ref": "#/$defs/a%20b", "$defs": {"a b": {"type": "string"}}}),
        json!({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "string"}}}),
        json!({"$ref": "other", "$defs": {"x": {"$id": "https://example.com/other", "type": "string"}}, "$id": "https://example.com/root"}),
        json!({"$dynamicRef": "#a", "$defs": {"x": {"$dynamicAnchor": "a", "type": "string"}}}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#a", "definitions": {"x": {"$id": "#a", "type": "string"}}}),
    ];
    for schema in cases {
        assert_eq!(complaint(&schema, &json!("text")), None, "{schema}");
        assert!(complaint(&schema, &json!(1)).is_some(), "{schema}");
    }
}

#[test]
fn a_lazy_schema_compiles_once_and_keeps_its_error() {
    let lazy = LazySchema::new(RawJson::from(json!({"type": "object"})));
    assert!(lazy.check(&json!({})).is_ok());
    assert!(std::ptr::eq(lazy.compiled().unwrap(), lazy.compiled().unwrap()));

    let broken = LazySchema::new(RawJson::from(json!({"type": "strnig"})));
    for _ in 0..2 {
        let Err(CheckError::Schema(message)) = broken.check(&json!({})) else {
            panic!("a broken schema cannot judge");
        };
        assert!(message.contains("strnig"), "{message}");
    }
}

#[test]
fn a_pattern_with_look_around_is_matched_by_trial() {
    let schema = compile(&json!({"pattern": "^(?=.*[0-9])[a-z0-9]+$"}));
    assert_eq!(schema.warnings(), [SchemaWarning::Backtracking]);
    assert!(schema.check(&json!("abc1")).is_ok());
    assert!(schema.check(&json!("abc")).is_err());
}
