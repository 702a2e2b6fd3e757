use raw_json::RawJson;
use serde_json::{Map, Value, json};
use tool_schema::{MAX_DEPTH, Schema, SchemaErrorKind};

fn kind(schema: &Value) -> Option<SchemaErrorKind> {
    Schema::compile(&RawJson::from(schema))
        .err()
        .map(|error| error.kind())
}

fn nested(depth: usize) -> Value {
    // Each iteration adds two levels of nesting.
    (0..depth / 2).fold(json!({}), |inner, _| json!({"properties": {"a": inner}}))
}

fn wide(n: usize) -> Value {
    let members: Map<String, Value> = (0..n).map(|index| (format!("p{index}"), json!({}))).collect();
    json!({"properties": members})
}

/// Returns subschemas that each refer to the next one twice: 2^n with expanded references.
fn diamond(n: usize, keyword: &str) -> Value {
    let mut definitions = Map::new();
    for index in 0..n {
        let next = json!({"$ref": format!("#/$defs/d{}", index + 1)});
        let both = match keyword {
            "properties" => json!({"x": next, "y": next}),
            _ => json!([next, next]),
        };
        definitions.insert(format!("d{index}"), json!({keyword: both}));
    }
    definitions.insert(format!("d{n}"), json!({"type": "string"}));
    json!({"$defs": definitions, "$ref": "#/$defs/d0"})
}

fn chain(n: usize) -> Value {
    let mut definitions = Map::new();
    for index in 0..n {
        definitions.insert(
            format!("c{index}"),
            json!({"$ref": format!("#/$defs/c{}", index + 1)}),
        );
    }
    definitions.insert(format!("c{n}"), json!({"type": "string"}));
    json!({"$defs": definitions, "$ref": "#/$defs/c0"})
}

#[test]
fn budgets_are_kept() {
    use SchemaErrorKind::TooLarge;
    let cases = [
        ("text within", json!({"description": "x".repeat(60_000)}), None),
        (
            "text beyond",
            json!({"description": "x".repeat(66_000)}),
            Some(TooLarge),
        ),
        ("depth within", nested(MAX_DEPTH - 2), None),
        ("depth beyond", nested(MAX_DEPTH + 2), Some(TooLarge)),
        ("subschemas within", wide(1_999), None),
        ("subschemas beyond", wide(2_000), Some(TooLarge)),
        ("diamond within", diamond(11, "allOf"), None),
        ("diamond beyond", diamond(12, "allOf"), Some(TooLarge)),
        ("diamond of anyOf", diamond(30, "anyOf"), Some(TooLarge)),
        ("diamond of properties", diamond(30, "properties"), Some(TooLarge)),
        ("chain within", chain(60), None),
        ("chain beyond", chain(70), Some(TooLarge)),
        ("long chain", chain(1_900), Some(TooLarge)),
    ];
    for (name, schema, expected) in cases {
        assert_eq!(kind(&schema), expected, "{name}");
    }
}

#[test]
fn a_deep_text_is_refused_before_it_is_read() {
    let text = format!("{}{}{}", r#"{"not":"#.repeat(100), "{}", "}".repeat(100));
    let error = Schema::compile(&RawJson::parse(text).unwrap()).unwrap_err();
    assert_eq!(error.kind(), SchemaErrorKind::TooLarge);
}

#[test]
fn a_depth_behind_a_duplicate_key_counts_too() {
    let deep = format!("{}{}{}", r#"{"not":"#.repeat(100), "{}", "}".repeat(100));
    let text = format!(r#"{{"a": 1, "a": 1, "not": {deep}}}"#);
    let error = Schema::compile(&RawJson::parse(text).unwrap()).unwrap_err();
    assert_eq!(error.kind(), SchemaErrorKind::TooLarge);
}

#[test]
fn a_huge_pattern_is_refused() {
    assert_eq!(
        kind(&json!({"pattern": "(((a{100}){100}){100}){100}"})),
        Some(SchemaErrorKind::Invalid)
    );
}
