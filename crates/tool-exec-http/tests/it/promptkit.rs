//! Settings in PromptKit's form.

use serde_json::{Value, json};

use crate::{
    server::{Received, Server},
    support::{Done, prepare, prepare_with},
};

async fn call(config: Value, arguments: &str, answer: &'static str) -> (Received, Done) {
    let server = Server::json(answer).await;
    let text = config.to_string().replace("http://HOST", &server.url(""));
    let values = [("${WEATHER_API_KEY}", "key-123456"), ("${TEAM}", "team")];
    let done = prepare_with(serde_json::from_str(&text).unwrap(), &values)
        .call_text(arguments)
        .await;
    (server.last(), done)
}

#[tokio::test]
async fn the_weather() {
    let config = json!({
        "url": "http://HOST/v1/current",
        "method": "POST",
        "timeout_ms": 5000,
        "headers": {"Authorization": "Bearer ${WEATHER_API_KEY}", "Content-Type": "application/json"},
        "headers_from_env": ["WEATHER_API_KEY"],
    });
    let (received, done) = call(config, r#"{"location": "Berlin"}"#, r#"{"temperature": 21.50}"#).await;
    assert_eq!(done.text(), r#"{"temperature": 21.50}"#);
    assert_eq!(received.line(), "POST /v1/current");
    assert_eq!(received.text(), r#"{"location":"Berlin"}"#);
    assert_eq!(
        received.header("authorization").as_deref(),
        Some("Bearer key-123456")
    );
    assert_eq!(received.header("weather-api-key"), None);
}

#[tokio::test]
async fn request_mapping() {
    let request = json!({
        "query_params": ["page", "absent"],
        "header_params": {"X-User": "u-{{.user}}"},
        "exclude": ["internal"],
        "static_query": {"version": "2 b", "team": "${TEAM}"},
        "static_headers": {"X-Static": "{{.page}}"},
        "static_body": {"source": "{agent}"},
    });
    let arguments =
        r#"{"id": 7, "page": 2, "user": "jo", "internal": 1, "name": "n", "big": 12345678901234567890123}"#;
    let config =
        json!({"url": "http://HOST/u/{{.id}}", "method": "POST", "timeout_ms": 0, "request": request});
    let (received, _) = call(config, arguments, "null").await;
    assert_eq!(received.line(), "POST /u/7?page=2&team=team&version=2%20b");
    assert_eq!(received.header("x-user").as_deref(), Some("u-jo"));
    assert_eq!(received.header("x-static").as_deref(), Some("{{.page}}"));
    assert_eq!(
        received.text(),
        r#"{"name":"n","big":12345678901234567890123,"source":"{agent}"}"#
    );
}

#[tokio::test]
async fn without_a_mapping_arguments_are_the_query_or_the_body() {
    let config = json!({"url": "http://HOST/s", "method": "GET", "timeout_ms": 100_000});
    let (received, _) = call(config, r#"{"q": "a b", "n": 42}"#, "null").await;
    assert_eq!(received.line(), "GET /s?q=a%20b&n=42");
    // With a mapping, a GET sends the arguments that it names.
    let config = json!({"url": "http://HOST/s", "method": "GET", "request": {"query_params": ["n"]}});
    let (received, _) = call(config, r#"{"q": "a b", "n": 42}"#, "null").await;
    assert_eq!(received.line(), "GET /s?n=42");
}

#[tokio::test]
async fn jmespath() {
    let config = json!({
        "url": "http://HOST/s",
        "method": "POST",
        "request": {"body_mapping": "{data: {title: t, tags: tags[].name}}"},
        "response": {"body_mapping": "items[?ok].{id: id, n: name}"},
    });
    let answer = r#"{"items": [{"id": 1, "name": "a", "ok": true}, {"id": 2, "name": "b", "ok": false}]}"#;
    let (received, done) = call(
        config,
        r#"{"t": "x", "tags": [{"name": "p"}, {"name": "q"}]}"#,
        answer,
    )
    .await;
    let body: Value = serde_json::from_str(received.text()).unwrap();
    assert_eq!(body, json!({"data": {"title": "x", "tags": ["p", "q"]}}));
    let result: Value = serde_json::from_str(done.text()).unwrap();
    assert_eq!(result, json!([{"id": 1, "n": "a"}]));
}

#[tokio::test]
async fn a_mapping_that_makes_much_of_little_is_stopped() {
    let server = Server::json(r#"{"a": "0123456789"}"#).await;
    let doubled = vec!["[@,@]"; 40].join("|");
    let config =
        json!({"url": server.url("/"), "response": {"body_mapping": doubled}, "max_response_bytes": 100_000});
    let done = prepare(config).call(json!({})).await;
    assert_eq!(done.error().to_string(), "the mapped result is too large");
}
