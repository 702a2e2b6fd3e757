use serde_json::{Value, json};

use crate::{
    server::{Received, Server},
    support::{prepare, prepare_with},
};

/// Calls a tool at a server that says `null`, and gives what arrived.
async fn sent(mut config: Value, arguments: &str) -> Received {
    let server = Server::json("null").await;
    let text = config.to_string().replace("http://HOST", &server.url(""));
    config = serde_json::from_str(&text).unwrap();
    let values = [("${KEY}", "k-123/4"), ("${BASE}", "BASE")];
    let done = prepare_with(config, &values).call_text(arguments).await;
    assert_eq!(done.text(), "null");
    server.last()
}

#[tokio::test]
async fn a_call_is_made() {
    let server = Server::json(r#" {"n": 123456789012345678901234567890, "f": 1e2} "#).await;
    let tool = prepare(json!({"url": server.url("/items/{id}")}));
    let done = tool.call(json!({"id": "a b", "q": [1, "x"]})).await;
    assert_eq!(done.text(), r#"{"n": 123456789012345678901234567890, "f": 1e2}"#);
    assert_eq!(done.dispatch, tool_core::DispatchState::Answered);
    assert_eq!(server.last().line(), "GET /items/a%20b?q=1&q=x");
}

#[tokio::test]
async fn addresses() {
    for (url, arguments, expected) in [
        ("/a/{id}", r#"{"id": "x"}"#, "/a/x"),
        ("/a/{id}", r#"{"id": "../../admin"}"#, "/a/..%2F..%2Fadmin"),
        (
            "/a/{id}",
            r#"{"id": "a/b?c=d#e&f%2e"}"#,
            "/a/a%2Fb%3Fc%3Dd%23e%26f%252e",
        ),
        ("/a/{id}", r#"{"id": "%2e%2e"}"#, "/a/%252e%252e"),
        ("/a/{id}", r#"{"id": "..\\x"}"#, "/a/..%5Cx"),
        ("/a/{id}", r#"{"id": "ü ä\n"}"#, "/a/%C3%BC%20%C3%A4%0A"),
        (
            "/a/{id}",
            r#"{"id": 12345678901234567890123}"#,
            "/a/12345678901234567890123",
        ),
        ("/a/{id}", r#"{"id": 1e2}"#, "/a/1e2"),
        ("/a/{id}", r#"{"id": true}"#, "/a/true"),
        ("/a/{id}.json", r#"{"id": "."}"#, "/a/..json"),
        ("/a/{{.id}}/b", r#"{"id": "${KEY}"}"#, "/a/%24%7BKEY%7D/b"),
        ("/a/{id}", r#"{"id": "{id}"}"#, "/a/%7Bid%7D"),
        ("/a/${KEY}/b", "{}", "/a/k-123/4/b"),
        ("/a?k=${KEY}&b", "{}", "/a?k=k-123%2F4&b"),
        (
            "/a?x={x}&y={y}&z=1",
            r#"{"y": "a&b=c+d"}"#,
            "/a?y=a%26b%3Dc%2Bd&z=1",
        ),
        ("/a?x=a%20b&y=-{y}-", r#"{"y": 1.50}"#, "/a?x=a%20b&y=-1.50-"),
        ("?x={x}", r#"{"x": ""}"#, "/?x="),
        ("", "{}", "/"),
    ] {
        let received = sent(
            json!({"url": format!("http://HOST{url}"), "query": {}}),
            arguments,
        )
        .await;
        assert_eq!(received.line(), format!("GET {expected}"), "{url} {arguments}");
    }
}
