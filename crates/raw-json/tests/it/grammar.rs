use raw_json::{JsonErrorKind, JsonLimits, RawJson, validate};

const ACCEPTED: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-0",
    "-1",
    "10",
    "1.5",
    "-1.5e10",
    "1E+2",
    "1e-2",
    "0.0",
    "0e0",
    "0e+1",
    "-0.0",
    "123456789012345678901234567890",
    "1e400",
    "-1e-400",
    "\"\"",
    "\"a\"",
    r#""\"\\\/\b\f\n\r\t""#,
    r#""\u0041""#,
    r#""\uD83D\uDE00""#,
    "\"\u{7f}\"",
    "\"\u{2028}\u{ffff}é🦀\"",
    // A lone surrogate is within the grammar (RFC 8259 section 8.2).
    r#""\uD800""#,
    r#""\udfff\uD800""#,
    r#""\u0000""#,
    "[]",
    "[ ]",
    "[1]",
    "[1,2]",
    "[[[]]]",
    "[\n1\t,\r2 ]",
    "[null,true,\"a\",{}]",
    "{}",
    "{ }",
    r#"{"a":1}"#,
    r#"{ "a" : 1 , "b" : [ ] }"#,
    r#"{"":0}"#,
    r#"{"a":{"b":{}}}"#,
    // Duplicate keys are within the grammar.
    r#"{"a":1,"a":2}"#,
    " 1",
    "1 ",
    "\t\r\n {} \n",
];

const REFUSED: &[&str] = &[
    "",
    " ",
    "\n",
    // Words.
    "nul",
    "nulll",
    "True",
    "NULL",
    "undefined",
    "NaN",
    "Infinity",
    "-Infinity",
    "truefalse",
    "tru e",
    // Numbers.
    "-",
    "+1",
    "01",
    "-01",
    "00",
    "1.",
    ".5",
    "-.5",
    "1.e1",
    "1e",
    "1e+",
    "1E-",
    "1e1.5",
    "0x1",
    "1_000",
    "1,0",
    "1 2",
    "--1",
    "0e",
    "1a",
    "٣",
    "1٣",
    "2.e3",
    "- 1",
    "1e 1",
    // Strings.
    "\"",
    "\"a",
    "'a'",
    r#""\"#,
    r#""\""#,
    r#""\x41""#,
    r#""\u""#,
    r#""\u1""#,
    r#""\u12G4""#,
    r#""\u 123""#,
    r#""\uD83D\u""#,
    r#""\a""#,
    r#""\'""#,
    r#""\U0041""#,
    r#""\u00e""#,
    "\"\n\"",
    "\"\t\"",
    "\"\u{0}\"",
    "\"\u{1f}\"",
    "\"a\" \"b\"",
    "a",
    r#"\u0041"#,
    // Arrays.
    "[",
    "]",
    "[1",
    "[1,",
    "[1,]",
    "[,1]",
    "[,]",
    "[1 2]",
    "[1,,2]",
    "[1;2]",
    "[}",
    "[1}",
    "[]]",
    "[[]",
    "[\"a]",
    "[1:2]",
    "[x]",
    "[1],",
    // Objects.
    "{",
    "}",
    "{]",
    r#"{"a"}"#,
    r#"{"a":}"#,
    r#"{"a":1"#,
    r#"{"a":1,}"#,
    r#"{,"a":1}"#,
    r#"{"a" 1}"#,
    r#"{"a":1 "b":2}"#,
    "{a:1}",
    "{1:1}",
    "{'a':1}",
    r#"{"a"::1}"#,
    r#"{"a":1}}"#,
    r#"{"a":1]"#,
    r#"{"a","b"}"#,
    "{null:1}",
    r#"{"a":1,,"b":2}"#,
    "{[]:1}",
    // Extensions of other formats.
    "// c\n1",
    "/* c */ 1",
    "1 // c",
    "[1,] ",
    "\u{feff}1",
    "\u{a0}1",
    "\u{b}1",
    "\u{c}1",
    "1\u{0}",
    "*",
    "<",
    "{}{}",
    "1\n2",
];

#[test]
fn the_grammar_is_kept() {
    for text in ACCEPTED {
        assert_eq!(validate(text, JsonLimits::RELAY), Ok(()), "{text:?}");
    }
    for text in REFUSED {
        let error = validate(text, JsonLimits::RELAY).expect_err(text);
        assert!(
            matches!(error.kind(), JsonErrorKind::Syntax(_)),
            "{text:?}: {error}"
        );
        assert!(error.offset() <= text.len(), "{text:?}: {error}");
    }
}

#[test]
fn serde_json_judges_alike() {
    let judge = |text: &str| serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
    for text in ACCEPTED {
        assert!(judge(text), "{text:?}");
    }
    for text in REFUSED {
        assert!(!judge(text), "{text:?}");
    }
}

#[test]
fn every_beginning_of_a_text_is_refused() {
    let text = r#"{"a": [1.5e3, "b\u0041\n", {"c": null}], "d": false}"#;
    for end in 0..text.len() {
        assert!(
            validate(&text[..end], JsonLimits::STRICT).is_err(),
            "{}",
            &text[..end]
        );
    }
    assert!(validate(text, JsonLimits::STRICT).is_ok());
}

#[test]
fn an_error_tells_the_place() {
    let cases = [
        (r#"{"a": x}"#, 6, "invalid JSON: expected a value at byte 6"),
        (
            "[1, 2",
            5,
            "invalid JSON: unexpected end of text inside a value at byte 5",
        ),
        (
            "\"é\u{1}\"",
            3,
            "invalid JSON: control character in a string at byte 3",
        ),
        ("[1] 2", 4, "invalid JSON: text after the value at byte 4"),
        ("[01]", 2, "invalid JSON: number with a leading zero at byte 2"),
    ];
    for (text, offset, message) in cases {
        let error = validate(text, JsonLimits::RELAY).unwrap_err();
        assert_eq!((error.offset(), error.to_string().as_str()), (offset, message));
    }
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    for bytes in [
        &b"\"\xff\""[..],
        b"\"\xc3\"",
        b"\"\xed\xa0\x80\"",
        b"\xef\xbb",
        b"\"\xc0\x80\"",
    ] {
        let error = RawJson::parse(bytes.to_vec()).unwrap_err();
        assert_eq!(error.kind(), &JsonErrorKind::Utf8, "{bytes:?}");
    }
}

#[test]
fn only_the_space_around_a_value_is_cut() {
    let value = RawJson::parse(" \r\n\t{ \"a\" : 1 }\t ").unwrap();
    assert_eq!(value.as_str(), "{ \"a\" : 1 }");
    assert_eq!(RawJson::parse("\" a \"").unwrap().as_str(), "\" a \"");
}
