use serde_json::{Value, json};
use tool_schema::{CheckError, Mismatch};

use crate::{compile, complaint};

fn mismatch(schema: &Value, value: &Value) -> Mismatch {
    match compile(schema).check(value) {
        Err(CheckError::Mismatch(mismatch)) => mismatch,
        other => panic!("{schema} and {value}: {other:?}"),
    }
}

#[test]
fn every_keyword_says_what_it_wants() {
    let cases = [
        (
            json!({"type": "string"}),
            json!(5),
            "the value must be a string, not 5",
        ),
        (
            json!({"type": ["string", "null"]}),
            json!(5),
            "the value must be null or a string, not 5",
        ),
        (
            json!({"required": ["city"]}),
            json!({"a": 1}),
            "missing required property `city`",
        ),
        (
            json!({"properties": {"u": {"enum": ["c", "f"]}}}),
            json!({"u": "k"}),
            r#"`/u` must be one of `c`, `f`, not "k""#,
        ),
        (
            json!({"enum": ["c"]}),
            json!("k"),
            r#"the value must be `c`, not "k""#,
        ),
        (
            json!({"const": {"a": 1}}),
            json!(1),
            r#"the value must be `{"a":1}`, not 1"#,
        ),
        (
            json!({"minimum": 1}),
            json!(0),
            "the value must be a number of at least 1, not 0",
        ),
        (
            json!({"maximum": 1.5}),
            json!(2),
            "the value must be a number of at most 1.5, not 2",
        ),
        (
            json!({"exclusiveMinimum": 1}),
            json!(1),
            "the value must be a number greater than 1, not 1",
        ),
        (
            json!({"exclusiveMaximum": 1}),
            json!(1),
            "the value must be a number less than 1, not 1",
        ),
        (
            json!({"multipleOf": 5}),
            json!(7),
            "the value must be a multiple of 5, not 7",
        ),
        (
            json!({"minLength": 1}),
            json!(""),
            r#"the value must be a string of at least 1 character, not """#,
        ),
        (
            json!({"maxLength": 2}),
            json!("abc"),
            r#"the value must be a string of at most 2 characters, not "abc""#,
        ),
        (
            json!({"pattern": "^a"}),
            json!("b"),
            r#"the value must be a string that matches `^a`, not "b""#,
        ),
        (
            json!({"minItems": 2}),
            json!([1]),
            "the value must be an array of at least 2 items, not [1]",
        ),
        (
            json!({"maxItems": 1}),
            json!([1, 2]),
            "the value must be an array of at most 1 item, not [1,2]",
        ),
        (
            json!({"uniqueItems": true}),
            json!([1, 1.0]),
            "the value must be an array without equal items, not [1,1.0]",
        ),
        (
            json!({"contains": {"const": 1}}),
            json!([2]),
            "the value must be an array with an item that fits `contains`, not [2]",
        ),
        (
            json!({"minProperties": 1}),
            json!({}),
            "the value must be an object of at least 1 property, not {}",
        ),
        (
            json!({"maxProperties": 0}),
            json!({"a": 1}),
            r#"the value must be an object of at most 0 properties, not {"a":1}"#,
        ),
        (
            json!({"properties": {"city": true}, "additionalProperties": false}),
            json!({"citi": 1}),
            "unknown property `citi`, allowed are `city`",
        ),
        (
            json!({"properties": {"a": true}, "unevaluatedProperties": false}),
            json!({"b": 1}),
            "unknown property `b`, allowed are `a`",
        ),
        (
            json!({"propertyNames": {"maxLength": 1}}),
            json!({"ab": 1}),
            r#"the value must have keys that are each a string of at most 1 character, not {"ab":1}"#,
        ),
        (
            json!({"properties": {"a": false}}),
            json!({"a": 1}),
            "`/a` must be omitted",
        ),
        (
            json!({"not": {"type": "null"}}),
            json!(null),
            "the value must not fit the schema under `not`, not null",
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "number"}]}),
            json!(null),
            "the value must be a string or a number, not null",
        ),
        (
            json!({"oneOf": [{"minimum": 1}, {"minimum": 2}]}),
            json!(3),
            "the value must fit just one alternative of `oneOf`, and it fits several",
        ),
        (
            json!({"dependentRequired": {"a": ["b"]}}),
            json!({"a": 1}),
            "missing required property `b`",
        ),
    ];
    for (schema, value, expected) in cases {
        assert_eq!(complaint(&schema, &value).as_deref(), Some(expected), "{schema}");
    }
}

#[test]
fn the_alternative_that_was_meant_is_explained() {
    let schema = json!({"properties": {"when": {"anyOf": [
        {"type": "null"},
        {"type": "object", "properties": {"day": {"type": "integer", "maximum": 31}}, "required": ["day"]},
    ]}}});
    let text = complaint(&schema, &json!({"when": {"day": 40}})).unwrap();
    assert_eq!(text, "`/when/day` must be a number of at most 31, not 40");
}

#[test]
fn a_tagged_alternative_is_found_by_its_tag() {
    let shape = |kind: &str, side: &str| json!({"type": "object", "properties": {"kind": {"const": kind}, side: {"type": "number"}}, "required": ["kind", side]});
    let schema = json!({"oneOf": [shape("circle", "radius"), shape("square", "side")]});
    let problems = mismatch(&schema, &json!({"kind": "square", "side": "2"})).problems;
    assert!(
        problems.iter().any(|problem| problem.path == "/side"),
        "{problems:?}"
    );
}

#[test]
fn problems_have_places_and_a_masked_form() {
    let schema = json!({"properties": {"a/b": {"items": {"type": "string"}}}, "required": ["c"]});
    let mismatch = mismatch(&schema, &json!({"a/b": ["x", 12345]}));
    let paths: Vec<&str> = mismatch
        .problems
        .iter()
        .map(|problem| problem.path.as_str())
        .collect();
    assert!(paths.contains(&"/a~1b/1") && paths.contains(&""), "{paths:?}");
    assert!(mismatch.to_string().contains("12345"));
    assert!(!mismatch.masked().contains("12345"), "{}", mismatch.masked());
    assert!(mismatch.masked().contains("must be a string, not an integer"));
}

#[test]
fn only_the_first_problems_are_told() {
    let value = Value::Array((0..100).map(Value::from).collect());
    let mismatch = mismatch(&json!({"items": {"type": "string"}}), &value);
    assert_eq!(mismatch.problems.len(), 8);
    assert!(mismatch.truncated);
    assert!(mismatch.to_string().ends_with("; and possibly more"));
}

#[test]
fn long_values_are_cut() {
    for value in [
        json!("x".repeat(10_000)),
        json!("é".repeat(10_000)),
        json!(vec![1; 10_000]),
        json!({"€".repeat(500): 1}),
    ] {
        let found = mismatch(&json!({"type": "null"}), &value)
            .problems
            .remove(0)
            .found
            .unwrap();
        assert_eq!(found.chars().count(), 80, "{found}");
        assert!(found.ends_with('…'));
    }
}

#[test]
fn a_problem_behind_many_right_values_is_found() {
    let mut items = vec![json!("right"); 50_000];
    items.push(json!(1));
    let mismatch = mismatch(&json!({"items": {"type": "string"}}), &Value::Array(items));
    assert_eq!(mismatch.problems[0].path, "/50000");
}

#[test]
fn long_lists_of_choices_are_cut() {
    let choices: Vec<String> = (0..500).map(|index| format!("choice {index}")).collect();
    let text = complaint(&json!({"enum": choices}), &json!("none")).unwrap();
    assert!(text.contains("and 490 more"), "{text}");
    assert!(text.len() < 400, "{text}");
}
