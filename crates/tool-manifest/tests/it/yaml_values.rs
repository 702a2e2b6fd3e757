//! Values of YAML, by the core schema of YAML 1.2.

use serde_json::{Value, json};
use toolplane::manifest::{LoadOptions, Syntax, load};

fn value(yaml: &str) -> Value {
    let text =
        format!("tools:\n  a:\n    description: x\n    executor:\n      kind: mock\n      v: {yaml}\n");
    let loaded = load(&LoadOptions::new().text("a.yaml", Syntax::Yaml, text));
    let loaded = loaded.unwrap_or_else(|problems| panic!("{}", problems.render(false)));
    loaded.configuration.tools[0].executor.config["v"].clone()
}

#[test]
fn plain_scalars() {
    for (yaml, json) in [
        ("no", json!("no")),
        ("on", json!("on")),
        ("y", json!("y")),
        ("true", json!(true)),
        ("FALSE", json!(false)),
        ("tRue", json!("tRue")),
        ("~", Value::Null),
        ("", Value::Null),
        ("Null", Value::Null),
        ("12", json!(12)),
        ("-12", json!(-12)),
        ("+12", json!(12)),
        ("0", json!(0)),
        ("-0", json!(-0.0)),
        ("0o14", json!(12)),
        ("0x1F", json!(31)),
        ("-0x1F", json!("-0x1F")),
        ("0x", json!("0x")),
        ("1_000", json!("1_000")),
        ("1:30", json!("1:30")),
        ("1.5", json!(1.5)),
        (".5", json!(0.5)),
        ("5.", json!(5.0)),
        ("1e3", json!(1e3)),
        ("1e+3", json!(1e3)),
        ("1e", json!("1e")),
        (".", json!(".")),
        ("1.2.3", json!("1.2.3")),
        ("2026-11-21", json!("2026-11-21")),
        ("'12'", json!("12")),
        ("\"no\"", json!("no")),
        ("!!str 012", json!("012")),
        ("18446744073709551615", json!(u64::MAX)),
        ("a#b", json!("a#b")),
        ("a #b", json!("a")),
        ("\"\\uD834\\uDD1E\"", json!("𝄞")),
    ] {
        assert_eq!(value(yaml), json, "{yaml}");
    }
}

#[test]
fn whole_values() {
    for (yaml, json) in [
        ("{a: 1, 2: b, true: c}", json!({"a": 1, "2": "b", "true": "c"})),
        ("\n        - 1\n        -\n", json!([1, null])),
        ("[1, [2], {}]", json!([1, [2], {}])),
        ("[&x {a: 1}, *x, *x]", json!([{"a": 1}, {"a": 1}, {"a": 1}])),
        ("|\n        a\n        b\n", json!("a\nb\n")),
        (">-\n        a\n        b\n", json!("a b")),
    ] {
        assert_eq!(value(yaml), json, "{yaml}");
    }
}

/// Schemas are text. Settings of executors are maps, which have the order of the program's `serde_json`.
#[test]
fn the_order_of_keys_in_a_schema_is_kept() {
    let text = "tools:\n  a:\n    description: x\n    executor: {kind: mock, result: 1}\n    \
                input_schema: {type: object, properties: {z: {}, a: {b: 1, a: 2}}, default: {b: 1}}\n";
    let loaded = load(&LoadOptions::new().text("a.yaml", Syntax::Yaml, text));
    let loaded = loaded.unwrap_or_else(|problems| panic!("{}", problems.render(false)));
    assert_eq!(
        loaded.configuration.tools[0].input_schema.as_str(),
        r#"{"type":"object","properties":{"z":{},"a":{"b":1,"a":2}},"default":{"b":1}}"#
    );
}
