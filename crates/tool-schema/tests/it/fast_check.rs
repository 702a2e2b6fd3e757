//! Fast check on the text: its decisions agree with those of the schema.

use proptest::{collection::vec, option, prelude::*, sample::select};
use raw_json::{JsonLimits, RawJson, validate};
use serde_json::{Value, json};
use tool_schema::CheckJson;

use crate::compile;

/// Returns `true` if the fast check accepts arguments.
fn surely_fits(schema: &Value, text: &str) -> bool {
    let raw = RawJson::parse(text.to_owned()).expect("it is JSON");
    compile(schema).surely_fits(&raw)
}

#[test]
fn plain_arguments_are_known_to_fit() {
    let schema = json!({
        "type": "object",
        "title": "search",
        "properties": {
            "text": {"type": "string", "description": "what to look for", "format": "email"},
            "limit": {"type": "integer", "default": 10},
            "ratio": {"type": ["number", "null"]},
            "exact": {"type": "boolean"},
            "units": {"type": "string", "enum": ["c", "f"]},
            "page": {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
        },
        "required": ["text"],
        "additionalProperties": false
    });
    for text in [
        r#"{"text":"tea"}"#,
        r#"{"text":"\"tea\"\n", "limit":10, "exact":true}"#,
        r#"{"te\u0078t":"é","ratio":null}"#,
        r#"{"ratio":1.5,"text":"","units":"f","page":{"size":-1}}"#,
        r#"{"ratio":1,"text":""}"#,
    ] {
        assert!(surely_fits(&schema, text), "{text}");
    }
    for text in [
        // Values that do not fit.
        "{}",
        "[]",
        r#"{"text":1}"#,
        r#"{"text":"tea","limit":1.5}"#,
        r#"{"text":"tea","units":"k"}"#,
        r#"{"text":"tea","other":1}"#,
        r#"{"text":"tea","page":{}}"#,
        r#"{"text":"tea","exact":null}"#,
        // Values that are left to the schema itself: numbers and texts that may be unreadable, and more.
        r#"{"text":"tea","ratio":1e400}"#,
        r#"{"text":"\ud800"}"#,
        r#"{"text":"tea","limit":1.0}"#,
        r#"{"text":"tea","units":"\u0066"}"#,
    ] {
        assert!(!surely_fits(&schema, text), "{text}");
    }
}

#[test]
fn of_what_asks_for_more_nothing_is_known() {
    for schema in [
        json!(true),
        json!({}),
        json!({"type": "object"}),
        json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}}),
        json!({"type": "object", "properties": {"a": {}}}),
        json!({"type": "object", "properties": {"a": {"type": "array"}}}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "minProperties": 1}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "allOf": [{}]}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "patternProperties": {}}),
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"properties": {"a": {"type": "string"}}}),
        json!({"type": ["string", "null"], "enum": ["a", null]}),
    ] {
        for text in [r#"{"a":"a"}"#, r#"{"a":[]}"#, r#""a""#] {
            assert!(!surely_fits(&schema, text), "{schema} {text}");
        }
    }
}

fn schema() -> impl Strategy<Value = Value> {
    let kinds = vec(
        select(vec!["string", "integer", "number", "boolean", "null", "object"]),
        1..3,
    );
    let words = option::of(vec(select(vec!["a", "b", "", "1"]), 1..3));
    let leaf = (kinds, words).prop_map(|(mut kinds, words)| {
        kinds.dedup();
        let mut schema = if kinds.len() == 1 {
            json!({"type": kinds[0]})
        } else {
            json!({"type": kinds})
        };
        if let Some(mut words) = words.filter(|_| schema["type"] == "string") {
            words.sort_unstable();
            words.dedup();
            schema["enum"] = json!(words);
        }
        schema
    });
    leaf.prop_recursive(2, 12, 4, |inner| {
        let properties = vec((select(vec!["a", "b", "c"]), inner), 0..4);
        (
            properties,
            vec(select(vec!["a", "b", "c"]), 0..3),
            option::of(any::<bool>()),
        )
            .prop_map(|(properties, mut required, others)| {
                required.sort_unstable();
                required.dedup();
                let properties: serde_json::Map<_, _> = properties
                    .into_iter()
                    .map(|(name, schema)| (name.to_owned(), schema))
                    .collect();
                let mut schema = json!({"type": "object", "properties": properties, "required": required});
                if let Some(others) = others {
                    schema["additionalProperties"] = json!(others);
                }
                schema
            })
    })
}

fn text() -> impl Strategy<Value = String> {
    let scalars = [
        "null",
        "true",
        "0",
        "-1",
        "1.5",
        "1.0",
        "1e2",
        "1e400",
        "12345678901234567890123456789012345",
        r#""a""#,
        r#""b""#,
        r#""""#,
        r#""\u0061""#,
        r#""\n""#,
        r#""\ud800""#,
        "[]",
        "[1]",
        "{}",
    ];
    let leaf = select(scalars.to_vec()).prop_map(str::to_owned);
    leaf.prop_recursive(3, 16, 4, |inner| {
        vec((select(vec!["a", "b", "c", r"\u0061"]), inner), 0..4).prop_map(|members| {
            let members: Vec<_> = members
                .iter()
                .map(|(key, value)| format!("\"{key}\": {value}"))
                .collect();
            format!("{{{}}}", members.join(","))
        })
    })
}

proptest! {
    #[test]
    fn what_surely_fits_does_fit(schema in schema(), text in text()) {
        // Arguments with duplicate keys are refused earlier.
        prop_assume!(validate(&text, JsonLimits::STRICT).is_ok());
        if surely_fits(&schema, &text) {
            let value: Value = serde_json::from_str(&text).expect("what is known to fit can be read");
            prop_assert!(compile(&schema).check(&value).is_ok(), "{} {}", schema, text);
        }
    }
}
