use proptest::{prelude::*, test_runner::RngSeed};
use raw_json::RawJson;
use serde_json::{Value, json};
use tool_schema::{AdaptedArguments, ArgumentHandling, CheckJson};

use crate::compile;

/// Adapts arguments, and returns them with the descriptions of the changes. Unchanged arguments keep their text.
fn adapted(schema: &Value, arguments: &str, handling: ArgumentHandling) -> (String, String) {
    let raw = RawJson::parse(arguments.to_owned()).expect("a test gives usable arguments");
    match compile(schema).adapt(&raw, handling) {
        Some(adapted) => (adapted.arguments.to_string(), adapted.to_string()),
        None => (arguments.to_owned(), String::new()),
    }
}

fn of(property: &Value) -> Value {
    json!({"type": "object", "properties": {"v": property}})
}

#[test]
fn values_are_converted_where_nothing_is_lost() {
    let list = json!({"type": "array", "items": {"type": "string"}});
    let optional = json!({"anyOf": [{"type": "integer"}, {"type": "null"}]});
    let cases = [
        (json!({"type": "integer"}), r#""5""#, "5"),
        (json!({"type": "integer"}), r#"" -12 ""#, "-12"),
        (json!({"type": "integer"}), r#""5.5""#, r#""5.5""#),
        (json!({"type": "integer"}), r#""five""#, r#""five""#),
        (json!({"type": "integer"}), "5.5", "5.5"),
        // A number with more digits than a double keeps all of them.
        (
            json!({"type": "number"}),
            r#""123456789012345678901234567890""#,
            "123456789012345678901234567890",
        ),
        (json!({"type": "number"}), r#""1e2""#, "1e2"),
        (json!({"type": "number"}), r#""0x10""#, r#""0x10""#),
        (json!({"type": "number"}), r#""NaN""#, r#""NaN""#),
        (json!({"type": "boolean"}), r#""True""#, "true"),
        (json!({"type": "boolean"}), r#""yes""#, r#""yes""#),
        (json!({"type": "boolean"}), "1", "1"),
        (json!({"type": "string"}), "1.50", r#""1.50""#),
        (json!({"type": "string"}), "true", r#""true""#),
        (json!({"type": "string"}), "[1]", "[1]"),
        (json!({"type": "string"}), r#""5""#, r#""5""#),
        (json!({"type": "object"}), r#""{\"a\": 1.0}""#, r#"{"a": 1.0}"#),
        (list.clone(), r#""[\"a\"]""#, r#"["a"]"#),
        (list.clone(), r#""a""#, r#"["a"]"#),
        (list.clone(), "[1, \"b\"]", r#"["1","b"]"#),
        (
            json!({"type": "array", "items": {"type": "integer"}}),
            r#""a""#,
            r#""a""#,
        ),
        (json!({"enum": [1, 2]}), r#""2""#, "2"),
        (json!({"type": ["integer", "null"]}), r#""7""#, "7"),
        (json!({"type": ["integer", "string"]}), r#""7""#, r#""7""#),
        (optional, r#""7""#, "7"),
        (
            json!({"allOf": [{"type": "integer"}, {"minimum": 3}]}),
            r#""7""#,
            "7",
        ),
        (json!(true), r#""7""#, r#""7""#),
    ];
    for (property, given, expected) in cases {
        let (text, said) = adapted(
            &of(&property),
            &format!("{{\"v\": {given}}}"),
            ArgumentHandling::Coerce,
        );
        assert_eq!(text, format!("{{\"v\": {expected}}}"), "{property}");
        assert_eq!(said.is_empty(), given == expected, "{property}: {said}");
    }
}

#[test]
fn a_null_for_what_may_be_absent_is_left_out() {
    let schema = json!({
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": ["string", "null"]}, "d": {}},
        "required": ["b"],
    });
    let (text, said) = adapted(
        &schema,
        r#"{"a": null, "b": null, "c": null, "d": null, "e": null}"#,
        ArgumentHandling::Coerce,
    );
    assert_eq!(text, r#"{"b": null,"c": null,"d": null,"e": null}"#);
    assert_eq!(said, "`/a` was dropped (null for what may be absent)");
}

#[test]
fn references_and_unions_are_followed_by_what_the_value_is() {
    let schema = json!({
        "$defs": {
            "circle": {"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind"]},
            "text": {"type": "object", "properties": {"kind": {"const": "text"}, "r": {"type": "string"}}, "required": ["kind"]},
            "tree": {"type": "object", "properties": {"size": {"type": "integer"}, "left": {"$ref": "#/$defs/tree"}}},
        },
        "properties": {
            "shapes": {"type": "array", "items": {"oneOf": [{"$ref": "#/$defs/circle"}, {"$ref": "#/$defs/text"}]}},
            "tree": {"$ref": "#/$defs/tree"},
            "loop": {"$ref": "#/properties/loop"},
        },
    });
    let (text, said) = adapted(
        &schema,
        r#"{"shapes":[{"kind":"text","r":1},{"kind":"circle","r":"1"}],"tree":{"left":{"left":{"size":"3"}}},"loop":{"a":"1"}}"#,
        ArgumentHandling::Coerce,
    );
    assert_eq!(
        text,
        r#"{"shapes":[{"kind":"text","r":"1"},{"kind":"circle","r":1}],"tree":{"left":{"left":{"size":3}}},"loop":{"a":"1"}}"#
    );
    assert_eq!(
        said,
        "`/shapes/0/r` was coerced (number to string), `/shapes/1/r` was coerced (string to number), \
         `/tree/left/left/size` was coerced (string to integer)"
    );
}

#[test]
fn sanitizing_takes_away_what_is_too_much() {
    let cases = [
        (
            json!({"type": "string", "maxLength": 3}),
            r#""añob""#,
            r#""año""#,
            "truncated (from 4 to 3 characters)",
        ),
        (
            json!({"type": "string"}),
            r#""a\u0000\u202eb\tc\n""#,
            r#""ab\tc\n""#,
            "cleaned (control characters taken out)",
        ),
        (
            json!({"minimum": 1, "type": "number"}),
            "-7",
            "1",
            "clamped (to the least, 1)",
        ),
        (
            json!({"maximum": 2.5}),
            "7e3",
            "2.5",
            "clamped (to the most, 2.5)",
        ),
        (
            json!({"exclusiveMaximum": 10, "type": "integer"}),
            "10",
            "9",
            "clamped (to the most, 9)",
        ),
        (
            json!({"exclusiveMinimum": 10, "type": "integer"}),
            "3",
            "11",
            "clamped (to the least, 11)",
        ),
        (
            json!({"type": "integer", "maximum": 5}),
            r#""9""#,
            "5",
            "coerced (string to integer), `/v` was clamped (to the most, 5)",
        ),
        (
            json!({"type": "object", "properties": {"a": {}}}),
            r#"{"b/c":1, "a": 1.0}"#,
            r#"{"a": 1.0}"#,
            "dropped (unknown)",
        ),
    ];
    for (property, given, expected, said) in cases {
        let (text, report) = adapted(
            &of(&property),
            &format!("{{\"v\":{given}}}"),
            ArgumentHandling::Sanitize,
        );
        assert_eq!(text, format!("{{\"v\":{expected}}}"), "{property}");
        assert!(report.ends_with(said), "{property}: {report}");
    }
}

#[test]
fn members_that_another_subschema_may_name_are_kept() {
    let part = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let open = [
        json!({"type": "object", "properties": {"a": {}}, "additionalProperties": true}),
        json!({"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "integer"}}),
        json!({"type": "object", "properties": {"a": {}}, "patternProperties": {"^x": {}}}),
        json!({"type": "object"}),
        json!({"allOf": [part, {"properties": {"x": {}}}]}),
        json!({"anyOf": [part, {"type": "null"}]}),
        json!({"properties": {"a": {}}, "if": {}, "then": {"properties": {"x": {}}}}),
        json!({"properties": {"a": {}}, "$ref": "#/$defs/p", "$defs": {"p": {"properties": {"x": {}}}}}),
    ];
    for schema in open {
        let (text, _) = adapted(&schema, r#"{"a":1,"x":2}"#, ArgumentHandling::Sanitize);
        assert_eq!(text, r#"{"a":1,"x":2}"#, "{schema}");
    }
    let closed = json!({"$ref": "#/$defs/p", "$defs": {"p": {"properties": {"a": {}}, "additionalProperties": false}}});
    let (text, _) = adapted(&closed, r#"{"a":1,"x":2}"#, ArgumentHandling::Sanitize);
    assert_eq!(text, r#"{"a":1}"#);
}

#[test]
fn a_schema_that_refers_to_itself_in_place_ends() {
    let schema = json!({
        "$ref": "#/$defs/a",
        "$defs": {
            "a": {"allOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/b"}]},
            "b": {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "anyOf": [{"$ref": "#/$defs/a"}]},
        },
    });
    let schema = compile(&schema);
    for handling in [ArgumentHandling::Coerce, ArgumentHandling::Sanitize] {
        assert_eq!(schema.adapt(&RawJson::object(), handling), None);
    }
}

#[test]
fn the_report_is_bounded() {
    let schema = json!({"properties": {"v": {"type": "array", "items": {"type": "integer"}}}});
    let list = vec![r#""1""#; 50].join(",");
    let raw = RawJson::parse(format!("{{\"v\":[{list}]}}")).unwrap();
    let adapted = compile(&schema).adapt(&raw, ArgumentHandling::Coerce).unwrap();
    assert_eq!(adapted.changes.len(), 50);
    let report: Value = adapted.report().to().unwrap();
    assert_eq!(report["changes"].as_array().unwrap().len(), 20);
    assert_eq!(report["more"], 30);
    assert_eq!(
        report["changes"][0],
        json!({"path": "/v/0", "change": "coerced", "detail": "string to integer"})
    );
    assert!(adapted.to_string().ends_with(", and 30 more"));
}

/// Strategy of values and their schemas, in which some values are written as text.
fn typed() -> impl Strategy<Value = (Value, Value, Value)> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(|n| (json!({"type": "integer"}), json!(n), json!(n.to_string()))),
        any::<bool>().prop_map(|b| (json!({"type": "boolean"}), json!(b), json!(b.to_string()))),
        "[a-z ]{0,8}".prop_map(|s| (json!({"type": "string"}), json!(s.clone()), json!(s))),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::btree_map("[a-z/~]{1,4}", inner.clone(), 0..4).prop_map(|members| {
                let part = |index: usize| {
                    members.iter().map(move |(key, (schema, value, text))| {
                        (key.clone(), [schema, value, text][index].clone())
                    })
                };
                let of = |index| part(index).collect::<serde_json::Map<_, _>>();
                (
                    json!({"type": "object", "properties": of(0)}),
                    Value::Object(of(1)),
                    Value::Object(of(2)),
                )
            }),
            inner.prop_map(|(schema, value, text)| {
                (
                    json!({"type": "array", "items": schema}),
                    json!([value.clone(), value]),
                    json!([text, text]),
                )
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(4), failure_persistence: None, ..ProptestConfig::default() })]

    /// Arguments whose numbers and booleans are written as text are coerced to the intended values, and fitting ones stay.
    #[test]
    fn what_was_made_text_comes_back((schema, value, text) in typed()) {
        let (schema, value, text) = (of(&schema), json!({"v": value}), json!({"v": text}));
        let compiled = compile(&schema);
        let raw = RawJson::from(&text);
        let came = compiled.adapt(&raw, ArgumentHandling::Coerce);
        let came: Option<AdaptedArguments> = came.inspect(|came| assert!(!came.changes.is_empty()));
        let came: Value = came.map_or(text, |came| came.arguments.to().unwrap());
        prop_assert_eq!(&came, &value);
        prop_assert!(compiled.check(&came).is_ok());
        prop_assert_eq!(compiled.adapt(&RawJson::from(&value), ArgumentHandling::Sanitize), None);
    }
}
