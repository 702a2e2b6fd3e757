use std::borrow::Cow;

use bytes::Bytes;
use bytestring::ByteString;
use raw_json::{JsonErrorKind, JsonKind, RawJson};
use serde::{Deserialize, Serialize};
use serde_json::{json, value::RawValue};

use crate::raw;

#[test]
fn members_are_given_in_order_with_their_own_bytes() {
    let object =
        raw(r#" { "b" : 1e2 , "\u0061":[ 1, 2 ],"c":{ "d":"\u0041"}, "e":12345678901234567890123} "#);
    let members: Vec<(String, String)> = object
        .members()
        .map(|(key, value)| (key.into_owned(), value.as_str().to_owned()))
        .collect();
    let expected = [
        ("b", "1e2"),
        ("a", "[ 1, 2 ]"),
        ("c", r#"{ "d":"\u0041"}"#),
        ("e", "12345678901234567890123"),
    ];
    assert_eq!(
        members,
        expected.map(|(key, value)| (key.to_owned(), value.to_owned()))
    );
}

#[test]
fn parts_say_what_they_are_and_have_parts_of_their_own() {
    let object = raw(r#"{"a":{"b":[1],"c":"t\u0065a"},"d":1}"#);
    let (key, part) = object.parts().next().expect("there are two");
    assert_eq!((&*key, part.kind()), ("a", JsonKind::Object));
    let inner: Vec<_> = part
        .parts()
        .map(|(key, part)| (key.into_owned(), part.kind(), part.text().map(Cow::into_owned)))
        .collect();
    let expected = [
        ("b".to_owned(), JsonKind::Array, None),
        ("c".to_owned(), JsonKind::String, Some("tea".to_owned())),
    ];
    assert_eq!(inner, expected);
    assert_eq!(part.to_raw().get("b"), Some(raw("[1]")));
    // It shares the bytes of the whole.
    let whole = object.as_bytes().as_ptr_range();
    assert!(whole.contains(&part.to_raw().as_bytes().as_ptr()));
}

#[test]
fn a_new_member_stands_behind_the_others() {
    for (object, expected) in [
        ("{}", r#"{"n\n":[1]}"#),
        ("{ }", r#"{"n\n":[1]}"#),
        (r#"{"a": 1 }"#, r#"{"a": 1,"n\n":[1]}"#),
    ] {
        let made = raw(object)
            .with_new_member("n\n", &raw("[1]"))
            .expect("it is an object");
        assert_eq!(made, raw(expected));
    }
    assert!(raw("[]").with_new_member("n", &raw("1")).is_err());
}

#[test]
fn what_is_no_object_has_no_members() {
    for text in ["[]", "[{\"a\":1}]", "1", "\"{}\"", "null", "{}", "{ }"] {
        assert_eq!(raw(text).members().count(), 0, "{text}");
        assert_eq!(raw(text).get("a"), None);
    }
}

#[test]
fn get_finds_the_first_member_with_a_key() {
    let object = raw(r#"{"x":{"a":0},"a":1,"a":2,"\u0062":3,"":4}"#);
    for (key, value) in [
        ("a", Some("1")),
        ("b", Some("3")),
        ("", Some("4")),
        ("c", None),
        ("\\u0062", None),
    ] {
        assert_eq!(object.get(key).as_ref().map(RawJson::as_str), value, "{key}");
    }
}

#[test]
fn parts_share_the_bytes_of_their_message() {
    let message = ByteString::from(r#"{"params": {"a": [1]}}"#);
    let whole: std::collections::HashMap<&str, &RawValue> = serde_json::from_str(&message).unwrap();
    let part = RawJson::from_raw_value(&message, whole["params"]);
    assert_eq!(part.as_str(), r#"{"a": [1]}"#);
    let range = message.as_bytes().as_ptr_range();
    assert!(range.contains(&part.as_bytes().as_ptr()));
    assert!(range.contains(&part.get("a").unwrap().as_bytes().as_ptr()));

    let elsewhere: Box<RawValue> = serde_json::from_str("[1]").unwrap();
    assert_eq!(RawJson::from_raw_value(&message, &elsewhere).as_str(), "[1]");
}

#[test]
fn with_members_changes_nothing_else() {
    /// A text, the members added to it, and the expected text.
    type Case = (
        &'static str,
        &'static [(&'static str, &'static str)],
        &'static str,
    );
    let cases: &[Case] = &[
        ("{}", &[("a", "1")], r#"{"a":1}"#),
        ("{ }", &[("a", "1"), ("b", "2")], r#"{ "a":1,"b":2}"#),
        (r#"{ "x" : 1e2 }"#, &[("a", "1")], r#"{ "x" : 1e2 ,"a":1}"#),
        (
            r#"{"a":1,"b":[ ],"c":3}"#,
            &[("b", "{}")],
            r#"{"a":1,"b":{},"c":3}"#,
        ),
        (
            r#"{"\u0061" : 1,"b":2}"#,
            &[("a", "9")],
            r#"{"\u0061" : 9,"b":2}"#,
        ),
        (r#"{"a":1,"a":2}"#, &[("a", "9")], r#"{"a":9,"a":9}"#),
        (r#"{"a":1}"#, &[], r#"{"a":1}"#),
        (r#"{"a":1}"#, &[("\"\n", "\"x\"")], r#"{"a":1,"\"\n":"x"}"#),
        (
            r#"{"b":1,"a":2}"#,
            &[("a", "8"), ("c", "7"), ("b", "9")],
            r#"{"b":9,"a":8,"c":7}"#,
        ),
    ];
    for (text, members, expected) in cases {
        let members: Vec<(&str, RawJson)> = members.iter().map(|(key, value)| (*key, raw(value))).collect();
        let result = raw(text).with_members(&members).unwrap();
        assert_eq!(result.as_str(), *expected);
        assert_eq!(raw(result.as_str()), result, "the result is JSON");
    }
    let error = raw("[]").with_members(&[]).unwrap_err();
    assert_eq!(error.kind(), &JsonErrorKind::Unexpected("an object"));
}

#[test]
fn without_members_changes_nothing_else() {
    let cases: &[(&str, &[&str], &str)] = &[
        (r#"{"a":1,"b":2,"c":3}"#, &["b"], r#"{"a":1,"c":3}"#),
        (r#"{"a":1}"#, &["a"], "{}"),
        (r#"{ "a" : 1e2 }"#, &["b"], r#"{ "a" : 1e2 }"#),
        // A key keeps its spelling.
        (
            r#"{"\u0061" : 1e2 , "b":1, "\ud800":2}"#,
            &["b"],
            r#"{"\u0061" : 1e2,"\ud800":2}"#,
        ),
        (r#"{"a":1,"\u0061":2,"b":3}"#, &["a"], r#"{"b":3}"#),
        (r#"{"a":1,"b":2}"#, &["a", "b", "c"], "{}"),
        ("{}", &["a"], "{}"),
    ];
    for (text, keys, expected) in cases {
        let result = raw(text).without_members(keys).unwrap();
        assert_eq!(result.as_str(), *expected);
        assert_eq!(raw(result.as_str()), result, "the result is JSON");
    }
    assert!(raw("1").without_members(&["a"]).is_err());
}

#[test]
fn kinds_are_told_by_the_first_byte() {
    for (text, kind) in [
        ("null", JsonKind::Null),
        ("true", JsonKind::Bool),
        ("false", JsonKind::Bool),
        ("-1", JsonKind::Number),
        ("0", JsonKind::Number),
        ("\"1\"", JsonKind::String),
        ("[1]", JsonKind::Array),
        ("{}", JsonKind::Object),
    ] {
        assert_eq!(raw(text).kind(), kind, "{text}");
    }
}

#[test]
fn values_are_read_and_written() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Envelope {
        id: u64,
        params: RawJson,
    }
    let text = r#"{"id":1,"params":{ "n": 1e2, "id":12345678901234567890123 }}"#;
    let envelope: Envelope = serde_json::from_str(text).unwrap();
    assert_eq!(
        envelope.params.as_str(),
        r#"{ "n": 1e2, "id":12345678901234567890123 }"#
    );
    assert_eq!(serde_json::to_string(&envelope).unwrap(), text);
    assert_eq!(RawJson::from_serialize(&envelope).unwrap().as_str(), text);

    assert_eq!(raw(r#"["a"]"#).to::<Vec<&str>>().unwrap(), ["a"]);
    assert_eq!(raw(r#""\u0041""#).string().as_deref(), Some("A"));
    assert_eq!(raw("1").string(), None);
    assert_eq!(RawJson::from("\"\n").as_str(), r#""\"\n""#);
    assert_eq!(RawJson::from(json!({"a": [1]})).as_str(), r#"{"a":[1]}"#);
    assert_eq!(
        (RawJson::from(true).as_str(), RawJson::from(7_u64).as_str()),
        ("true", "7")
    );
    assert_eq!(RawJson::default(), RawJson::null());
}

#[test]
fn a_value_that_does_not_fit_tells_the_place() {
    let error = raw("{\n  \"a\": 1,\n  \"b\": \"x\"\n}")
        .to::<std::collections::HashMap<String, u64>>()
        .unwrap_err();
    assert!(matches!(error.kind(), JsonErrorKind::Shape(_)));
    // serde_json reports the end of the value that does not fit.
    assert_eq!(error.offset(), 21);
}

#[test]
fn debug_shows_no_payload() {
    assert_eq!(
        format!("{:?}", raw(r#"{"secret":"hunter2"}"#)),
        "RawJson(Object, 20 bytes)"
    );
}

#[test]
fn deep_values_are_refused_when_they_are_read() {
    let text = format!("{}{}", "[".repeat(200), "]".repeat(200));
    assert!(serde_json::from_str::<RawJson>(&text).is_err());
    assert!(RawJson::parse(Bytes::from(text)).is_err());
}

#[test]
fn with_members_in_is_with_members_one_level_down() {
    for (text, expected) in [
        ("{}", r#"{"m":{"a":9,"b":8}}"#),
        ("{ }", r#"{ "m":{"a":9,"b":8}}"#),
        (r#"{"x":1}"#, r#"{"x":1,"m":{"a":9,"b":8}}"#),
        (r#"{"m": { "a" : 1 },"x":1}"#, r#"{"m": { "a" : 9 ,"b":8},"x":1}"#),
        (r#"{"\u006d":{},"x":1}"#, r#"{"\u006d":{"a":9,"b":8},"x":1}"#),
        (r#"{"m":null}"#, r#"{"m":{"a":9,"b":8}}"#),
        (
            r#"{"m":{"c":1},"m":2}"#,
            r#"{"m":{"c":1,"a":9,"b":8},"m":{"c":1,"a":9,"b":8}}"#,
        ),
    ] {
        let changed = raw(text).with_members_in("m", &[("a", raw("9")), ("b", raw("8"))]);
        assert_eq!(changed.unwrap().as_str(), expected, "{text}");
    }
    assert_eq!(
        raw("[]").with_members_in("m", &[]).unwrap_err().kind(),
        &JsonErrorKind::Unexpected("an object")
    );
}

#[test]
fn only_spaces_between_tokens_change() {
    let value = raw(r#" {"a" : [1e2,{ }, [ ], 123456789012345678901234567890,"x\", [é"],"\u0062":null} "#);
    assert_eq!(
        value.indented(),
        "{\n  \"a\": [\n    1e2,\n    {},\n    [],\n    123456789012345678901234567890,\n    \"x\\\", [é\"\n  ],\n  \"\\u0062\": null\n}"
    );
    assert_eq!(
        value.compact().as_str(),
        r#"{"a":[1e2,{},[],123456789012345678901234567890,"x\", [é"],"\u0062":null}"#
    );
}
