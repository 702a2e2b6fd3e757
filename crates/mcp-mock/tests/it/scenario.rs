//! Scenarios in files.

use mcp_client::{EraChoice, Handlers};
use mcp_mock::MockServer;
use raw_json::RawJson;
use serde_json::json;

use crate::support::{Client, WAYS, raw, speaking};

const SCENARIO: &str = r#"
name: weather
version: "7"
instructions: Be kind
page_size: 1
tools:
  forecast:
    title: Forecast
    description: The weather of tomorrow
    input_schema: {type: object, properties: {city: {type: string}}, required: [city]}
    annotations: {readOnlyHint: true}
    members: {vendor: {no: "yes"}}
    replies:
      - template: "Sunny in {{ city }}"
        before:
          - progress: {progress: 1, total: 2}
          - log: {level: info, data: working, logger: mock}
      - json: '{"content":[], "n": 12345678901234567890123}'
      - structured: {sunny: true}
      - failure: the station is down
      - error: {code: -32000, message: busy, data: [1]}
      - {text: twice, misbehave: [twice, {garbage_before: npm warn}]}
      - before:
          - elicit: {key: where, message: "Where to?", schema: {type: object, properties: {}}}
          - add_tools: {more: {replies: [{text: more}]}}
        template: "{{ $answers.where.action }}"
prompts:
  ask:
    arguments: {city: {required: true, complete: [Riga, Rome]}}
resources:
  "mock://notes": {mime_type: text/plain, replies: [{text: notes}]}
resource_templates:
  "mock://{city}": {complete: {city: [Oslo]}, replies: [{template: "{{ city }}"}]}
on:
  tools/list: [{delay: 1ms}, {}]
"#;

#[tokio::test]
async fn a_scenario_says_all_that_the_library_can() {
    for (transport, era) in WAYS {
        let options = speaking(era).handlers(Handlers::new().elicitation(RawJson::object(), |_| async {
            Ok(raw(r#"{"action":"decline"}"#))
        }));
        let server = MockServer::from_yaml(SCENARIO).unwrap();
        let client = Client::open(&server, transport, options).await.unwrap();
        assert_eq!(client.connection.server().name().unwrap(), "weather");
        let tools = client.connection.list_tools().await.unwrap();
        let expected = r#"{"name":"forecast","inputSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},"title":"Forecast","description":"The weather of tomorrow","annotations":{"readOnlyHint":true},"vendor":{"no":"yes"}}"#;
        assert_eq!(tools[0].as_str(), expected);
        assert_eq!(
            client.says("forecast", json!({"city": "Riga"})).await,
            "Sunny in Riga"
        );
        let exact = raw(r#"{"name":"forecast"}"#);
        let exact = client
            .connection
            .request("tools/call", Some(exact), Default::default())
            .await
            .unwrap();
        assert!(
            exact
                .as_str()
                .contains(r#""content":[], "n": 12345678901234567890123}"#),
            "{exact}"
        );
        let structured = client.call("forecast", json!({})).await.unwrap();
        assert_eq!(structured["structuredContent"], json!({"sunny": true}));
        assert_eq!(
            client.call("forecast", json!({})).await.unwrap()["isError"],
            json!(true)
        );
        let error = client.call("forecast", json!({})).await.unwrap_err();
        let error = error.as_rpc().unwrap();
        assert_eq!((error.code, &*error.message), (-32000, "busy"));
        assert_eq!(error.data.as_ref().unwrap().as_str(), "[1]");
        assert_eq!(client.says("forecast", json!({})).await, "twice");
        assert_eq!(client.says("forecast", json!({})).await, "decline");
        assert_eq!(client.says("more", json!({})).await, "more");
        let notes = client
            .request("resources/read", json!({"uri": "mock://notes"}))
            .await
            .unwrap();
        assert_eq!(notes["contents"][0]["text"], "notes");
        let oslo = client
            .request("resources/read", json!({"uri": "mock://Oslo"}))
            .await
            .unwrap();
        assert_eq!(oslo["contents"][0]["text"], "Oslo");
        let prompts = client.connection.list_prompts().await.unwrap();
        assert!(prompts[0].as_str().contains(r#""required":true"#));
    }
}

#[tokio::test]
async fn json_is_read_as_well() {
    let server =
        MockServer::from_yaml(r#"{"era": "legacy", "tools": {"a": {"replies": [{"text": "b"}]}}}"#).unwrap();
    let client = Client::open(
        &server,
        crate::support::Transport::Http,
        speaking(EraChoice::Auto),
    )
    .await
    .unwrap();
    assert_eq!(client.connection.server().era(), mcp_wire::Era::Legacy);
    assert_eq!(client.says("a", json!({})).await, "b");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let wrong = [
        "tool: {}",
        "tools:\n  a:\n    replies:\n      - delai: 5s",
        "tools:\n  a:\n    replies:\n      - delay: 5 sec",
        "tools:\n  a:\n    replies:\n      - delay: 5",
        "tools:\n  a:\n    replies:\n      - text: a\n        failure: b",
        "tools:\n  a:\n    replies:\n      - misbehave: [twise]",
        "tools:\n  a:\n    replies:\n      - misbehave: [{status: {cod: 503}}]",
        "tools:\n  a:\n    replies:\n      - misbehave: [{status: 503}]",
        "tools:\n  a:\n    replies:\n      - before: [{log: {level: loud, data: a}}]",
        "tools:\n  a:\n    replies:\n      - json: '{'",
        "tools:\n  a: {}\n  a: {}",
        "tools: [a]",
        "era: old",
        "page_size: many",
        "tools:\n\ta: {}",
        "tools: {",
        "a: 1\n---\nb: 2",
        "",
    ];
    let mut said = String::new();
    for text in wrong {
        let line = match MockServer::from_yaml(text) {
            Ok(_) => "fine".to_owned(),
            Err(error) => format!(
                "{error} | {} | {}",
                error.hint().unwrap_or("-"),
                error.source_line()
            ),
        };
        said.push_str(&format!("{text:?}\n    {line}\n"));
    }
    insta::assert_snapshot!(said);
}
