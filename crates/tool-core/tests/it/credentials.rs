//! Parts of a text that are hidden as credentials.

use std::borrow::Cow;

use proptest::{collection::vec, prelude::*, sample::select};
use tool_core::hide_credentials;

fn check(text: &str, expected: &str) {
    assert_eq!(hide_credentials(text), expected, "{text}");
}

#[test]
fn what_stands_where_a_credential_stands_is_hidden() {
    for (text, expected) in [
        (
            "Authorization: Bearer abc.DEF-123 refused",
            "Authorization: Bearer [redacted] refused",
        ),
        ("Authorization:Bearer abc1", "Authorization:Bearer [redacted]"),
        ("authorization: Token A1b2", "authorization: Token [redacted]"),
        (
            "the header was Basic YWRhOnB3=",
            "the header was Basic [redacted]",
        ),
        (
            "map[Authorization:[Bearer abc1] Accept:[text/html]]",
            "map[Authorization:[Bearer [redacted] Accept:[text/html]]",
        ),
        ("password: swordfish", "password: [redacted]"),
        (
            "<password>swordfish</password>",
            "<password>[redacted]</password>",
        ),
        ("api_key=xyz12345 is wrong", "api_key=[redacted] is wrong"),
        ("api_key=swordfish is wrong", "api_key=[redacted] is wrong"),
        ("x-api-key : A1b2C3", "x-api-key : [redacted]"),
        ("error:X-Api-Key:A1b2C3", "error:X-Api-Key:[redacted]"),
        ("a=1&client_secret=x&b=2", "a=1&client_secret=[redacted]&b=2"),
        (r#"{"token":"A1b2C3"}"#, r#"{"token":"[redacted]"}"#),
        (r#"{"key":["A1b2C3"]}"#, r#"{"key":["[redacted]"]}"#),
        (r#""{\"token\": \"A1b2C3\"}""#, r#""{\"token\": \"[redacted]\"}""#),
        (
            "Set-Cookie: sid=A1; Path=/x\nnext line 7A",
            "Set-Cookie: [redacted]; [redacted]\nnext line 7A",
        ),
        (
            "{cookie: a=A1; b=B2, n: 7A}",
            "{cookie: [redacted]; [redacted], n: 7A}",
        ),
    ] {
        check(text, expected);
    }
}

#[test]
fn urls_keep_their_address() {
    for (text, expected) in [
        (
            "GET https://ada:hunter2@10.1.2.3:80/v1?token=abc&n=1#x failed",
            "GET https://[redacted]@10.1.2.3:80/v1?token=[redacted]&n=1#x failed",
        ),
        ("redis://:p@ss@db:6379", "redis://[redacted]@db:6379"),
        (
            "mongodb://a:b@h1:27017,h2:27017/x",
            "mongodb://[redacted]@h1:27017,h2:27017/x",
        ),
        (
            "http://proxy/?to=https://ada:pw@host/",
            "http://proxy/?to=https://[redacted]@host/",
        ),
        ("a://token:/&@", "a://token:/&@"),
        ("a://b://c:pw@d", "a://b://[redacted]@d"),
        ("auth_url: https://auth.corp/x", "auth_url: https://auth.corp/x"),
    ] {
        check(text, expected);
    }
}

#[test]
fn a_user_with_a_password_is_hidden_without_a_scheme() {
    for (text, expected) in [
        (
            "ada:hunter2@db.corp:5432 refused",
            "[redacted]@db.corp:5432 refused",
        ),
        ("dsn=ada:p/w@x@10.0.0.7/db", "dsn=[redacted]@10.0.0.7/db"),
        (
            "via \"ada:hunter2@[fd00::1]:80\"",
            "via \"[redacted]@[fd00::1]:80\"",
        ),
    ] {
        check(text, expected);
    }
    for text in [
        "mailto:ada@example.com",
        "git@github.com:org/repo",
        "image:1@sha256:12",
        "a:@b",
        "at 10:36 @ home",
    ] {
        check(text, text);
    }
}

#[test]
fn private_keys_are_hidden_as_a_whole() {
    let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE abc=\n-----END RSA PRIVATE KEY-----";
    for (text, expected) in [
        (format!("is {key}, and {key}!"), "is [redacted], and [redacted]!"),
        (key.replace('\n', "\\n"), "[redacted]"),
        (
            "it: -----BEGIN PRIVATE KEY-----\nMIIE cut\n".to_owned(),
            "it: [redacted]\n",
        ),
        (
            r#"{"k":"-----BEGIN PRIVATE KEY-----\\nMIIE","n":1}"#.to_owned(),
            r#"{"k":"[redacted]","n":1}"#,
        ),
    ] {
        check(&text, expected);
    }
    let public = "-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----";
    check(public, public);
}

#[test]
fn tokens_of_well_known_kinds_are_hidden_wherever_they_stand() {
    for (text, expected) in [
        ("sent ghp_0123456789abcdefABCDEF0123", "sent [redacted]"),
        ("id:ghp_0123456789abcdefABCDEF0123/x", "id:[redacted]/x"),
        ("https://h/AKIAIOSFODNN7EXAMPLE/x", "https://h/[redacted]/x"),
        (
            r"ghp_0123456789abcdefABCDEF\token: A1",
            r"[redacted]\token: [redacted]",
        ),
        ("(eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln)", "([redacted])"),
    ] {
        check(text, expected);
    }
}

#[test]
fn what_is_no_credential_is_left() {
    for text in [
        "",
        "nothing to hide: call 5 of 7 failed",
        "invalid token: expired",
        "the key must be a string",
        "max_tokens=4096 is too many tokens: 512 at most",
        "https://auth.corp:8443/token?n=1: Connection refused (os error 111)",
        "auth.corp: Connection refused, auth.corp:5432: Timeout",
        "token: 10.0.0.7:80 refused, key: fd00::1",
        "ssh ada@10.0.0.7, C:\\Users\\ada, /etc/app/key.pem",
        "Authorization: [redacted]",
    ] {
        assert!(
            matches!(hide_credentials(text), Cow::Borrowed(same) if same == text),
            "{text}"
        );
    }
}

/// Generates texts of relevant parts, in any order.
fn text() -> impl Strategy<Value = String> {
    let parts = "Authorization|Bearer|basic|token|api_key|password|cookie|ghp_0123456789abcdefABCDEF|eyJ|https|://|@|:|=| |\
                 \n|\"|\\|[|]|[redacted]|<|>|;|,|&|?|#|/|+|.|a|A1|10.0.0.7|expired|é|-";
    let parts: Vec<_> = parts.split('|').collect();
    prop_oneof![
        ".*",
        vec(select(parts), 0..24).prop_map(|parts: Vec<&str>| parts.concat())
    ]
}

proptest! {
    #[test]
    fn what_is_hidden_stays_as_it_is(text in text()) {
        let once = hide_credentials(&text);
        let twice = hide_credentials(&once);
        prop_assert_eq!(&twice, &once);
        prop_assert!(matches!(twice, Cow::Borrowed(_)));
    }

    #[test]
    fn a_text_without_credentials_is_left(words in vec("[a-jl-rt-z]{1,9}|[0-9]{1,4}|10\\.0\\.0\\.[0-9]|/v1/x", 0..20)) {
        let text = words.join(" ");
        prop_assert!(matches!(hide_credentials(&text), Cow::Borrowed(_)), "{}", text);
    }

    #[test]
    fn a_credential_is_hidden_whatever_is_around_it(before in "[a-z0-9 .:/]{0,20}", after in "[a-z0-9 .:/]{0,20}") {
        let text = format!("{before} Authorization: Bearer S3cr3t-V4lue {after} https://u:S3cr3t-V4lue@10.0.0.7/");
        let shown = hide_credentials(&text);
        prop_assert!(!shown.contains("S3cr3t") && shown.contains("@10.0.0.7/"), "{}", shown);
    }
}
