use raw_json::{JsonErrorKind, JsonLimits, RawJson, canonical, validate};
use serde_json::value::RawValue;

fn arrays(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

fn objects(depth: usize) -> String {
    format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth))
}

#[test]
fn the_depth_is_limited() {
    for make in [arrays, objects] {
        assert_eq!(validate(&make(128), JsonLimits::RELAY), Ok(()));
        let error = validate(&make(129), JsonLimits::RELAY).unwrap_err();
        assert_eq!(error.kind(), &JsonErrorKind::TooDeep(128));
        assert_eq!(
            error.to_string(),
            format!("nested deeper than 128 levels at byte {}", error.offset())
        );
    }
    // Scalars add no level.
    let flat = JsonLimits::RELAY.with_depth(0);
    assert_eq!(validate("1", flat), Ok(()));
    assert!(validate("[]", flat).is_err());
    assert!(RawJson::parse(arrays(129)).is_err());
}

#[test]
fn breadth_is_no_depth() {
    let text = format!("[{}[]]", "[[]],".repeat(1_000));
    let limits = JsonLimits::RELAY.with_depth(3);
    assert_eq!(validate(&text, limits), Ok(()));
}

#[test]
fn no_depth_exhausts_the_stack() {
    let text = objects(1_000_000);
    assert!(validate(&text, JsonLimits::STRICT).is_err());
    let endless = JsonLimits::STRICT.with_depth(usize::MAX);
    assert_eq!(validate(&text, endless), Ok(()));

    // The depth of a part of a message is not validated, so every operation must tolerate it.
    let message = bytestring::ByteString::from(text);
    let part: &RawValue = serde_json::from_str(&message).unwrap();
    let raw = RawJson::from_raw_value(&message, part);
    assert_eq!(raw.members().count(), 1);
    assert_eq!(canonical(&raw), raw.as_str());
    assert!(raw.with_members(&[("b", RawJson::null())]).is_ok());
}

#[test]
fn duplicate_keys_are_refused_at_any_depth_and_in_any_spelling() {
    let cases = [
        (r#"{"a":1,"a":2}"#, "a"),
        (r#"{"a":1,"b":2,"a":3}"#, "a"),
        (r#"{"":1,"":2}"#, ""),
        (r#"{"a":1,"\u0061":2}"#, "a"),
        (r#"{"\u0061":1,"a":2}"#, "a"),
        (r#"{"\n":1,"\u000a":2}"#, "\n"),
        (r#"{"/":1,"\/":2}"#, "/"),
        (r#"{"😀":1,"\ud83d\ude00":2}"#, "😀"),
        (r#"[[{"x":[{"a":1,"a":1}]}]]"#, "a"),
        (r#"{"a":{"b":1,"b":2},"c":1}"#, "b"),
    ];
    for (text, key) in cases {
        let error = validate(text, JsonLimits::STRICT).unwrap_err();
        assert_eq!(
            error.kind(),
            &JsonErrorKind::DuplicateKey(key.to_owned()),
            "{text}"
        );
        assert_eq!(validate(text, JsonLimits::RELAY), Ok(()), "{text}");
    }
}

#[test]
fn the_second_of_many_keys_is_found() {
    for n in [2, 31, 32, 33, 1_000] {
        let members = |last: usize| -> String {
            let members: Vec<String> = (0..n).map(|key| format!(r#""k{key}":0"#)).collect();
            format!(r#"{{{},"k{last}":0}}"#, members.join(","))
        };
        assert_eq!(validate(&members(n), JsonLimits::STRICT), Ok(()));
        for again in [0, n / 2, n - 1] {
            assert!(
                validate(&members(again), JsonLimits::STRICT).is_err(),
                "{n} keys, {again} again"
            );
        }
    }
}

#[test]
fn equal_keys_in_different_objects_are_no_duplicates() {
    for text in [
        r#"{"a":{"a":{"a":1}}}"#,
        r#"[{"a":1},{"a":1}]"#,
        r#"{"a":"a","b":"a"}"#,
        r#"{"a":1,"A":2,"a ":3}"#,
    ] {
        assert_eq!(validate(text, JsonLimits::STRICT), Ok(()), "{text}");
    }
}

#[test]
fn a_key_that_is_no_text_is_refused_where_keys_are_judged() {
    let text = r#"{"\ud800":1}"#;
    assert!(validate(text, JsonLimits::STRICT).is_err());
    assert_eq!(validate(text, JsonLimits::RELAY), Ok(()));
    // As a value it is accepted.
    assert_eq!(validate(r#"{"a":"\ud800"}"#, JsonLimits::STRICT), Ok(()));
}

#[test]
fn a_long_duplicate_key_is_cut_in_the_message() {
    let key = "é".repeat(1_000);
    let error = validate(&format!(r#"{{"{key}":1,"{key}":2}}"#), JsonLimits::STRICT).unwrap_err();
    assert!(error.to_string().len() < 200, "{error}");
}

#[test]
fn objects_with_many_keys_stand_in_each_other() {
    let object = |first: &str, inner: &str| {
        let members: Vec<String> = (0..40).map(|key| format!(r#""k{key}":{inner}"#)).collect();
        format!(r#"{{{first}{}}}"#, members.join(","))
    };
    let inner = object("", "0");
    assert_eq!(validate(&object("", &inner), JsonLimits::STRICT), Ok(()));
    // The outer object's keys are still known after the inner objects.
    let again = object(r#""k19":0,"#, &inner);
    assert!(validate(&again, JsonLimits::STRICT).is_err());
    let again = object("", &object(r#""k19":0,"#, "0"));
    assert!(validate(&again, JsonLimits::STRICT).is_err());
}
