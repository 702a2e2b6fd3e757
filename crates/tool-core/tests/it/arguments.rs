use tool_core::{Arguments, ErrorKind};

#[test]
fn refuses_what_two_readers_could_read_differently() {
    for text in [
        r#"{"a": 1, "a": 2}"#,
        r#"{"a": {"b": [{"c": 1, "c": 1}]}}"#,
        r#"{"a": 1, "\u0061": 2}"#,
        "[1]",
        "\"text\"",
        "",
        "{\"a\": 1",
        "{\"a\": 1} {}",
    ] {
        let error = Arguments::parse(text).expect_err(text);
        assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{text}");
    }
}

#[test]
fn refuses_nesting_that_would_exhaust_a_stack() {
    let text = format!("{{\"a\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let error = Arguments::parse(text).expect_err("too deep");
    assert!(error.message().contains("nested deeper than 128"), "{error}");
}

#[test]
fn keeps_the_text_and_digests_its_meaning() {
    let one = Arguments::parse(r#" {"b": 1e2, "a": 12345678901234567890123} "#).unwrap();
    let two = Arguments::parse(r#"{"a":12345678901234567890123,"b":100}"#).unwrap();
    assert_eq!(one.raw().as_str(), r#"{"b": 1e2, "a": 12345678901234567890123}"#);
    assert_eq!(one.digest(), two.digest());
    let other = Arguments::parse(r#"{"a":12345678901234567890124,"b":100}"#).unwrap();
    assert_ne!(one.digest(), other.digest(), "the last digit counts");
}

#[test]
fn nothing_and_the_empty_object_are_told_apart() {
    let none = Arguments::none();
    let empty = Arguments::parse("{}").unwrap();
    assert_eq!(none.raw(), empty.raw());
    assert_eq!((none.are_given(), empty.are_given()), (false, true));
}

/// serde_json alone rounds some of these numbers to a neighbour of the nearest double.
#[test]
fn the_tree_has_the_nearest_double_of_each_number() {
    for text in [
        "111.22966756765733",
        "471.25011117258117",
        "0.30000000000000004",
        "5e-324",
    ] {
        let arguments = Arguments::parse(format!("{{\"n\": {text}}}")).unwrap();
        let expected: f64 = text.parse().unwrap();
        assert_eq!(arguments.value()["n"].as_f64(), Some(expected), "{text}");
    }
}
