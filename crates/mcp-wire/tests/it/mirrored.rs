use mcp_wire::{MirroredParams, header};
use raw_json::RawJson;

fn read(schema: &str) -> MirroredParams {
    MirroredParams::from_schema(&RawJson::parse(schema.to_owned()).unwrap())
}

fn headers(mirrored: &MirroredParams) -> Vec<(&str, String)> {
    let params = mirrored.params().iter();
    params
        .map(|param| (param.header(), param.path().join(".")))
        .collect()
}

#[test]
fn arguments_that_are_mirrored() {
    let mirrored = read(
        r#"{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"Region"},
            "b":{"type":"object","properties":{"x-mcp-header":{"type":["integer","null"],"x-mcp-\u0068eader":"N"}}},
            "c":{"type":"string","default":{"x-mcp-header":1}}}}"#,
    );
    assert_eq!(
        headers(&mirrored),
        [
            ("mcp-param-region", "a".to_owned()),
            ("mcp-param-n", "b.x-mcp-header".to_owned())
        ]
    );
    assert_eq!(mirrored.problem(), None);
    assert_eq!(read("true"), MirroredParams::default());
}

#[test]
fn marks_that_are_not_valid_are_named_and_passed_over() {
    for property in [
        r#"{"type":"string","x-mcp-header":""}"#,
        r#"{"type":"string","x-mcp-header":7}"#,
        r#"{"type":"string","x-mcp-header":"A b"}"#,
        r#"{"type":"string","x-mcp-header":"A:b"}"#,
        r#"{"type":"string","x-mcp-header":"Région"}"#,
        r#"{"type":"string","x-mcp-header":"A\r\nb"}"#,
        r#"{"type":"number","x-mcp-header":"A"}"#,
        r#"{"type":["string","number"],"x-mcp-header":"A"}"#,
        r#"{"type":["null"],"x-mcp-header":"A"}"#,
        r#"{"type":"object","x-mcp-header":"A"}"#,
        r#"{"x-mcp-header":"A"}"#,
        r#"{"type":"array","items":{"type":"string","x-mcp-header":"A"}}"#,
        r#"{"anyOf":[{"type":"string","x-mcp-header":"A"}]}"#,
        r#"{"if":{"properties":{"x":{"type":"string","x-mcp-header":"A"}}}}"#,
        r#"{"type":"string","x-mcp-header":"ok"}"#,
    ] {
        let mirrored = read(&format!(
            r#"{{"properties":{{"good":{{"type":"string","x-mcp-header":"Ok"}},"p":{property}}}}}"#
        ));
        assert!(mirrored.problem().is_some(), "{property}");
        assert_eq!(
            headers(&mirrored),
            [("mcp-param-ok", "good".to_owned())],
            "{property}"
        );
    }
    assert!(
        read(r#"{"type":"string","x-mcp-header":"A"}"#)
            .problem()
            .is_some()
    );
}

#[test]
fn what_headers_say_of_arguments() {
    let mirrored = read(r#"{"properties":{"p":{"type":"string","x-mcp-header":"P"}}}"#);
    for (value, expected) in [
        (r#""us-west1""#, Some("us-west1")),
        (r#""""#, Some("")),
        ("true", Some("true")),
        ("-7", Some("-7")),
        ("42.0", Some("42")),
        ("1e3", Some("1000")),
        ("1.5", Some("1.5")),
        ("null", None),
        ("{}", None),
        ("[1]", None),
    ] {
        let arguments = RawJson::parse(format!(r#"{{"p":{value}}}"#)).unwrap();
        let said = mirrored.params()[0].value(Some(&arguments));
        assert_eq!(said.as_deref(), expected, "{value}");
    }
    assert_eq!(mirrored.params()[0].value(None), None);
}

#[test]
fn texts_stand_in_headers_as_they_are_or_in_base64() {
    for (text, value) in [
        ("us-west1", "us-west1"),
        ("", ""),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("\u{7f}\u{80}\u{fffd}", "=?base64?f8KA77+9?="),
    ] {
        assert_eq!(header::encode(text), value, "{text}");
        assert_eq!(header::decode(value).as_deref(), Some(text), "{value}");
    }
    assert_eq!(header::decode("=?base64??=").as_deref(), Some(""));
    assert_eq!(
        header::decode("=?base64?SGVsbG8").as_deref(),
        Some("=?base64?SGVsbG8")
    );
    for invalid in ["SGVsbG8", "SG VsbG8=", "====", "QR==", "/w=="] {
        assert_eq!(
            header::decode(&format!("=?base64?{invalid}?=")),
            None,
            "{invalid}"
        );
    }
}
