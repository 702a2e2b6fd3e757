use raw_json::RawJson;
use serde_json::{Value, json};
use tool_schema::{CheckError, CheckJson, LazySchema, Schema, SchemaErrorKind, SchemaWarning, any_object};

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
        ("[]", NotASchema, "it must be an object or a boolean"),
        ("null", NotASchema, "it must be an object or a boolean"),
        (r#"{"type": "strnig"}"#, Invalid, "strnig"),
        (r#"{"minimum": "1"}"#, Invalid, "minimum"),
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

/// Compiles an unusable schema. Returns the place and the reason of its error.
fn refusal(text: &str) -> (String, String) {
    let error = text.parse::<Schema>().expect_err("the schema is not usable");
    assert_eq!(
        error.to_string(),
        format!("the schema is not usable: {}", error.reason())
    );
    (error.pointer().to_owned(), error.reason().to_owned())
}

#[test]
fn a_broken_rule_of_a_draft_is_described_with_its_place() {
    const TYPES: &str = r#"one of `array`, `boolean`, `integer`, `"null"`, `number`, `object`, `string`"#;
    let cases = [
        (
            r#"{"properties": {"n": {"type": "strin"}}}"#,
            "/properties/n/type",
            format!(r#"`/properties/n/type` must be {TYPES} or an array, not "strin""#),
        ),
        (
            r#"{"type": ["string", "nul"]}"#,
            "/type/1",
            format!(r#"`/type/1` must be {TYPES}, not "nul""#),
        ),
        (
            r#"{"properties": {"a": {"exclusiveMinimum": true}}}"#,
            "/properties/a/exclusiveMinimum",
            "`/properties/a/exclusiveMinimum` must be a number, not true".to_owned(),
        ),
        (
            r#"{"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": 5}"#,
            "/exclusiveMinimum",
            "`/exclusiveMinimum` must be a boolean, not 5".to_owned(),
        ),
        (
            r#"{"properties": {"a": "string"}}"#,
            "/properties/a",
            r#"`/properties/a` must be a boolean or an object, not "string""#.to_owned(),
        ),
        (
            r#"{"properties": {"p": {"pattern": "("}}}"#,
            "/properties/p/pattern",
            "`/properties/p/pattern` must be a regular expression, not `(`".to_owned(),
        ),
        (
            r#"{"patternProperties": {"(": {}}}"#,
            "/patternProperties/(",
            "the key of `/patternProperties/(` must be a regular expression".to_owned(),
        ),
    ];
    for (text, pointer, reason) in cases {
        assert_eq!(refusal(text), (pointer.to_owned(), reason), "{text}");
    }
}

#[test]
fn every_broken_rule_of_a_draft_is_described() {
    let (pointer, reason) = refusal(r#"{"maxLength": "x", "minLength": -1}"#);
    assert!(pointer == "/maxLength" || pointer == "/minLength", "{pointer}");
    assert!(
        reason.contains(r#"`/maxLength` must be an integer, not "x""#),
        "{reason}"
    );
    assert!(
        reason.contains("`/minLength` must be a number of at least 0, not -1"),
        "{reason}"
    );
}

#[test]
fn a_dangling_reference_is_described_with_its_place() {
    let cases = [
        (
            r##"{"properties": {"a": {"$ref": "#/$defs/b"}, "c": {"$ref": "#/$defs/d"}}, "$defs": {"b": {}}}"##,
            "/properties/c/$ref",
            "refers to `#/$defs/d`, which is not in the schema",
        ),
        (
            r##"{"properties": {"a": {"$ref": "#nowhere"}}}"##,
            "/properties/a/$ref",
            "refers to `#nowhere`, which is not in the schema",
        ),
        (
            r#"{"items": {"$ref": "https://example.com/s.json"}}"#,
            "/items/$ref",
            "refers to `https://example.com/s.json`, which is not in the schema, and nothing is fetched",
        ),
        // The reference that resolves to an embedded schema is not to blame.
        (
            r#"{"$id": "https://example.com/a", "allOf": [{"$ref": "in"}, {"$ref": "out"}], "$defs": {"x": {"$id": "in"}}}"#,
            "/allOf/1/$ref",
            "refers to `out`, which is not in the schema, and nothing is fetched",
        ),
        (
            r#"{"properties": {"a": {"$ref": "http://[1"}}}"#,
            "/properties/a/$ref",
            "must be a URI reference, not `http://[1`",
        ),
    ];
    for (text, pointer, reason) in cases {
        let reason = format!("`{pointer}` {reason}");
        assert_eq!(refusal(text), (pointer.to_owned(), reason), "{text}");
    }
}

#[test]
fn a_schema_is_read_from_text_and_from_a_tree() {
    let text = r#"{"type": "integer", "maximum": 1e2}"#;
    let schema: Schema = text.parse().unwrap();
    assert_eq!(schema.raw().as_str(), text);
    assert_eq!(schema.document(), Some(schema.raw()));
    let tree = Schema::compile_value(&json!({"type": "integer"})).unwrap();
    for schema in [schema, tree] {
        assert_eq!(schema.check(&json!(7)), Ok(()));
        assert!(schema.check(&json!("7")).is_err());
    }
    let too_long = format!(r#"{{"title": "{}"}}"#, "x".repeat(tool_schema::MAX_TEXT));
    let error = too_long.parse::<Schema>().unwrap_err();
    assert_eq!(error.kind(), SchemaErrorKind::TooLarge);
    assert_eq!(
        "[".parse::<Schema>().unwrap_err().kind(),
        SchemaErrorKind::NotASchema
    );
}

#[test]
fn texts_with_a_duplicate_key_are_refused_at_any_depth() {
    let schema: Schema = r#"{"properties": {"n": {"minimum": 1}}}"#.parse().unwrap();
    let lazy = LazySchema::new(schema.raw().clone());
    let cases = [
        (r#"{"n": 1}"#, None),
        (r#"{"n": 0}"#, Some("`/n` must be a number of at least 1, not 0")),
        (r#"{"n": 1, "n": 0}"#, Some("duplicate key `n` at byte 9")),
        (r#"{"n": 1, "\u006e": 1}"#, Some("duplicate key `n` at byte 9")),
        (
            r#"{"a": [{"b": {"c": 1, "c": 1}}]}"#,
            Some("duplicate key `c` at byte 22"),
        ),
        (
            "{",
            Some("invalid JSON: expected a key in double quotes at byte 1"),
        ),
    ];
    for (text, message) in cases {
        for checked in [schema.check_text(text), lazy.check_text(text)] {
            let error = checked.err().map(|error| error.to_string());
            assert_eq!(error.as_deref(), message, "{text}");
        }
    }
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    assert!(matches!(schema.check_text(&deep), Err(CheckError::Text(_))));
    // A value that only the tree decides, and a text that fits without one.
    let closed: Schema = r#"{"type": "object", "properties": {"a": {"type": "string"}}}"#
        .parse()
        .unwrap();
    assert_eq!(closed.check_text(r#"{"a": "x"}"#), Ok(()));
    assert_eq!(closed.check_text(r#"{"b": "x"}"#), Ok(()));
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
