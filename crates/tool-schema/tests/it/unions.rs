//! Errors of discriminated unions: one sentence, in whichever form the union is written.

use serde_json::{Map, Value, json};

use crate::complaint;

/// Returns all forms of a property with one of these values.
fn fixed(values: &[&str]) -> Vec<Value> {
    let mut ways = vec![
        json!({"enum": values}),
        json!({"type": "string", "enum": values, "title": "Kind"}),
        json!({"allOf": [{"type": "string"}, {"enum": values}]}),
        json!({"anyOf": values.iter().map(|value| json!({"const": value})).collect::<Vec<_>>()}),
    ];
    if let [value] = values {
        ways.push(json!({"const": value}));
        ways.push(json!({"const": value, "type": "string", "default": value}));
    }
    ways
}

/// Returns all forms of an alternative with a fixed `kind` and a required property of its own, in definitions.
fn alternatives(name: &str, kind: &Value, own: &str) -> Vec<(Value, Map<String, Value>)> {
    let properties = json!({"kind": kind, own: {"type": "integer"}, "color": {"enum": [name]}});
    let plain = json!({"type": "object", "properties": properties, "required": ["kind", own]});
    let definitions = |members: Value| members.as_object().cloned().unwrap_or_default();
    vec![
        (plain.clone(), Map::new()),
        (
            json!({"$ref": format!("#/$defs/{name}")}),
            definitions(json!({name: plain})),
        ),
        (
            json!({"allOf": [{"$ref": format!("#/$defs/{name}")}, {"required": ["kind"]}]}),
            definitions(json!({name: {"type": "object", "properties": properties, "required": [own]}})),
        ),
        (
            json!({"$ref": format!("#/$defs/{name}")}),
            definitions(json!({
                name: {
                    "type": "object",
                    "properties": {"kind": {"$ref": format!("#/$defs/{name}Kind")}, own: {"type": "integer"}},
                    "required": ["kind", own],
                    "additionalProperties": true
                },
                format!("{name}Kind"): kind,
            })),
        ),
    ]
}

/// Returns schemas with a property `pet`, which is a cat or a dog.
fn schemas() -> Vec<Value> {
    let mut schemas = Vec::new();
    for (cat_kind, dog_kind) in fixed(&["cat"]).iter().zip(fixed(&["dog"]).iter().rev()) {
        for (cat, cats) in alternatives("cat", cat_kind, "lives") {
            for (dog, dogs) in alternatives("dog", dog_kind, "walks") {
                let mut definitions = cats.clone();
                definitions.extend(dogs);
                let unions = [
                    json!({"oneOf": [cat, dog]}),
                    json!({"anyOf": [cat, dog]}),
                    json!({"anyOf": [{"oneOf": [cat, dog]}, {"type": "null"}]}),
                    json!({"anyOf": [cat, {"type": "null"}, dog]}),
                    json!({"oneOf": [cat, dog], "discriminator": {"propertyName": "kind"}}),
                    json!({"anyOf": [{"oneOf": [cat]}, {"oneOf": [dog]}]}),
                    json!({"allOf": [{"oneOf": [cat, dog]}]}),
                ];
                for union in unions {
                    let schema = |pet: Value, definitions: &Map<String, Value>| {
                        json!({
                            "type": "object",
                            "properties": {"pet": pet},
                            "required": ["pet"],
                            "$defs": definitions
                        })
                    };
                    schemas.push(schema(union.clone(), &definitions));
                    let mut definitions = definitions.clone();
                    definitions.insert("Pet".to_owned(), union);
                    schemas.push(schema(json!({"$ref": "#/$defs/Pet"}), &definitions));
                }
            }
        }
    }
    schemas
}

#[test]
fn an_unknown_discriminator_is_the_only_problem() {
    let schemas = schemas();
    assert!(schemas.len() > 500, "{}", schemas.len());
    for schema in schemas {
        for pet in [
            json!({"kind": "cow"}),
            json!({"kind": "cow", "lives": 9}),
            json!({"kind": "cow", "walks": "x", "color": "dog"}),
        ] {
            let text = complaint(&schema, &json!({"pet": pet}));
            let expected = r#"`/pet/kind` must be one of `cat`, `dog`, not "cow""#;
            assert_eq!(text.as_deref(), Some(expected), "{schema} {pet}");
        }
        let text = complaint(&schema, &json!({"pet": {"kind": 7}}));
        let expected = "`/pet/kind` must be one of `cat`, `dog`, not 7";
        assert_eq!(text.as_deref(), Some(expected), "{schema}");
    }
}

#[test]
fn a_missing_discriminator_is_named_with_its_values() {
    for schema in schemas() {
        let text = complaint(&schema, &json!({"pet": {"lives": 9}}));
        let expected = "missing required property `kind` in `/pet`, one of `cat`, `dog`";
        assert_eq!(text.as_deref(), Some(expected), "{schema}");
        let text = complaint(&schema, &json!({}));
        assert_eq!(
            text.as_deref(),
            Some("missing required property `pet`"),
            "{schema}"
        );
    }
}

#[test]
fn only_the_alternative_that_the_discriminator_selects_is_explained() {
    for schema in schemas() {
        let text = complaint(&schema, &json!({"pet": {"kind": "dog"}}));
        let expected = "missing required property `walks` in `/pet`";
        assert_eq!(text.as_deref(), Some(expected), "{schema}");
        let text = complaint(&schema, &json!({"pet": {"kind": "cat", "lives": "nine"}}));
        let expected = r#"`/pet/lives` must be an integer, not "nine""#;
        assert_eq!(text.as_deref(), Some(expected), "{schema}");
    }
}

#[test]
fn another_fixed_property_does_not_hide_the_discriminator() {
    let animal = |kind: &str, colors: &[&str]| json!({"type": "object", "properties": {"color": {"enum": colors}, "kind": {"const": kind}}, "required": ["kind", "size"]});
    let schema = json!({"oneOf": [animal("cat", &["red", "grey"]), animal("dog", &["grey", "black"])]});
    let text = complaint(&schema, &json!({"kind": "cat", "color": "black", "size": 1})).unwrap();
    assert_eq!(text, r#"`/color` must be one of `red`, `grey`, not "black""#);
    let text = complaint(&schema, &json!({"kind": "cow", "color": "grey", "size": 1})).unwrap();
    assert_eq!(text, r#"`/kind` must be one of `cat`, `dog`, not "cow""#);
}

#[test]
fn nested_unions_are_read_from_the_outside_in() {
    let event = |kind: &str, part: Value| json!({"type": "object", "properties": {"type": {"const": kind}, "body": part}, "required": ["type", "body"]});
    let body = |shape: &str, own: &str| json!({"type": "object", "properties": {"shape": {"const": shape}, own: {"type": "number"}}, "required": ["shape", own]});
    let shapes = json!({"oneOf": [body("circle", "radius"), body("square", "side")]});
    let schema = json!({"oneOf": [event("draw", shapes), event("wait", json!({"type": "integer"}))]});
    let cases = [
        (
            json!({"type": "jump"}),
            r#"`/type` must be one of `draw`, `wait`, not "jump""#,
        ),
        (
            json!({"type": "draw", "body": {"shape": "oval"}}),
            r#"`/body/shape` must be one of `circle`, `square`, not "oval""#,
        ),
        (
            json!({"type": "draw", "body": {"shape": "circle"}}),
            "missing required property `radius` in `/body`",
        ),
        (
            json!({"type": "wait", "body": "long"}),
            r#"`/body` must be an integer, not "long""#,
        ),
    ];
    for (value, expected) in cases {
        assert_eq!(complaint(&schema, &value).as_deref(), Some(expected));
    }
}

#[test]
fn a_discriminator_may_lie_deeper_and_need_no_string() {
    let message = |version: Value, own: &str| {
        json!({
            "type": "object",
            "properties": {"meta": {"type": "object", "properties": {"v": {"const": version}}, "required": ["v"]}},
            "required": ["meta", own]
        })
    };
    let schema =
        json!({"oneOf": [message(json!(1), "a"), message(json!("1"), "b"), message(json!(true), "c")]});
    let cases = [
        (
            json!({"meta": {"v": 2}}),
            r#"`/meta/v` must be one of `1`, `"1"`, `true`, not 2"#,
        ),
        (json!({"meta": {"v": 1.0}}), "missing required property `a`"),
        (json!({"meta": {"v": "1"}}), "missing required property `b`"),
        (
            json!({"meta": {}}),
            r#"missing required property `v` in `/meta`, one of `1`, `"1"`, `true`"#,
        ),
        (json!({"a": 1}), "missing required property `meta`"),
    ];
    for (value, expected) in cases {
        assert_eq!(complaint(&schema, &value).as_deref(), Some(expected), "{value}");
    }
}

#[test]
fn alternatives_of_required_properties_are_named() {
    let schema = json!({"anyOf": [{"required": ["path"]}, {"required": ["url", "method"]}]});
    let text = complaint(&schema, &json!({})).unwrap();
    assert_eq!(text, "missing `path` or `url` and `method`");
}

#[test]
fn a_union_of_itself_is_explained_within_the_budget() {
    let schema = json!({
        "$defs": {"n": {"oneOf": [
            {"allOf": [{"$ref": "#/$defs/leaf"}]},
            {"type": "object", "properties": {"op": {"const": "not"}, "of": {"$ref": "#/$defs/n"}}, "required": ["op", "of"]}
        ]},
        "leaf": {"type": "object", "properties": {"op": {"const": "leaf"}}, "required": ["op"]}},
        "$ref": "#/$defs/n"
    });
    let text = complaint(&schema, &json!({"op": "not", "of": {"op": "nand"}})).unwrap();
    assert_eq!(text, r#"`/of/op` must be one of `leaf`, `not`, not "nand""#);
}
