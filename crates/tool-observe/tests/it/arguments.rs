//! Sanitised arguments, as they are logged.

use raw_json::RawJson;
use serde_json::{Value, json};
use tool_observe::sanitize_arguments;

fn shown(value: Value) -> String {
    sanitize_arguments(&RawJson::from(value))
}

#[test]
fn secrets_are_hidden_by_their_names_in_any_spelling_and_at_any_depth() {
    let names = [
        "password",
        "PASSWORD",
        "apiKey",
        "API_KEY",
        "x-api-key",
        "token",
        "accessToken",
        "refresh_token",
        "secret",
        "client.secret",
        "Authorization",
        "proxy-authorization",
        "Set-Cookie",
        "pwd",
        "ｐａｓｓｗｏｒｄ",
        "private key",
        "awsSecretAccessKey",
        "credentials",
    ];
    for name in names {
        let inside = json!({"list": [{"deep": {name: "hunter2", "other": 1}}], name: {"a": ["hunter2"]}});
        let text = shown(inside);
        assert!(!text.contains("hunter2"), "{name}: {text}");
        assert!(
            text.contains("[hidden]") && text.contains(r#""other":1"#),
            "{text}"
        );
    }
}

#[test]
fn secrets_are_hidden_by_what_they_look_like() {
    let values = [
        "Bearer abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig",
        "sk-hunter2",
        "ghp_hunter2",
        "AKIAhunter2",
        "-----BEGIN PRIVATE KEY-----",
        "https://user:hunter2@example.com/",
        "curl -H 'x-api-key: hunter2' https://example.com",
        "https://example.com/?q=1&access_token=hunter2",
        "PGPASSWORD=hunter2 psql",
        r#"{"password": "hunter2"}"#,
        r#"[{"user": {"apiKey": "hunter2"}}]"#,
    ];
    for value in values {
        let text = shown(json!({"text": value, "list": [value]}));
        assert!(text.contains("[hidden]"), "{text}");
        for part in ["hunter2", "abcdef", "eyJzdWIi", "PRIVATE"] {
            assert!(!text.contains(part), "{text}");
        }
    }
}

#[test]
fn a_named_header_hides_its_value() {
    let text = shown(json!({"headers": [
        {"name": "X-Api-Key", "value": "hunter2"},
        {"name": "Accept", "value": "text/plain"},
    ]}));
    assert_eq!(
        text,
        r#"{"headers":[{"name":"X-Api-Key","value":"[hidden]"},{"name":"Accept","value":"text/plain"}]}"#
    );
}

#[test]
fn what_is_no_secret_is_shown() {
    let plain = json!({
        "city": "Oslo",
        "n": 1.50,
        "key": "issue-1",
        "author": "me",
        "when": "12:30",
        "url": "https://example.com/a?b=c@d",
        "nothing": null,
    });
    assert_eq!(shown(plain.clone()), RawJson::from(plain).as_str());
}

#[test]
fn what_is_shown_is_bounded_and_still_json() {
    let deep = (0..100).fold(json!(1), |inner, _| json!({"a": inner}));
    let cases = [
        json!({"text": "x".repeat(1000), "long": "é".repeat(100_000)}),
        json!({"list": vec![json!({"a": "b".repeat(100)}); 10_000]}),
        Value::Object((0..10_000).map(|n| (format!("k{n}"), json!("v"))).collect()),
        json!({"k".repeat(100_000): 1}),
        json!({"deep": deep}),
    ];
    for value in cases {
        let text = shown(value);
        assert!(text.len() < 4096, "{} bytes", text.len());
        assert!(serde_json::from_str::<Value>(&text).is_ok(), "{text}");
    }
    let digits = RawJson::parse(format!(r#"{{"n": {}}}"#, "9".repeat(10_000))).unwrap();
    assert_eq!(sanitize_arguments(&digits), r#"{"n":"…"}"#);
}
