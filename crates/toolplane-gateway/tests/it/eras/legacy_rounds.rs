//! Questions to legacy clients while their call is in progress.

use std::time::Duration;

use serde_json::{Value, json};
use toolplane::core::ClientKey;

use crate::support::{BehaviorExecutor, Client, behavior_plane};

const ALL: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{"x":1e2},"roots":{},"experimental":{}}"#;

async fn opened(executor: &BehaviorExecutor, tools: &[&str], capabilities: &str) -> Client {
    let mut client = Client::new(behavior_plane(executor, tools));
    client.initialize(capabilities).await;
    client
}

/// Calls a tool and answers its questions in turn.
async fn called(client: &mut Client, tool: &str, answers: &[&str]) -> Value {
    client
        .send(&format!(
            r#"{{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{{"name":"{tool}"}}}}"#
        ))
        .await;
    for answer in answers {
        let question: Value = serde_json::from_str(&client.receive().await).expect("JSON");
        assert!(question.get("method").is_some(), "no question: {question}");
        let id = &question["id"];
        client
            .send(&format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#))
            .await;
    }
    serde_json::from_str(&client.receive().await).expect("JSON")
}

fn said(answer: &Value) -> &Value {
    &answer["result"]["structuredContent"]["said"]
}

#[tokio::test]
async fn a_question_in_the_middle_of_a_call_is_a_request() {
    let executor = BehaviorExecutor::default();
    let mut client = opened(&executor, &["ask"], ALL).await;
    client
        .send(r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"ask"}}"#)
        .await;
    assert_eq!(
        client.receive().await,
        r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"one","requestedSchema":{"n":1e2}}}"#
    );
    client
        .send(r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"n":1e2}}}"#)
        .await;
    let answer = client.receive().await;
    assert!(
        answer.contains(r#"{\"action\":\"accept\",\"content\":{\"n\":1e2}}"#),
        "{answer}"
    );
    let refusal = r#""error":{"code":-1,"message":"no"}"#;
    let refused = called(&mut client, "ask", &[refusal]).await;
    assert_eq!(said(&refused), &json!([r#"refused: {"code":-1,"message":"no"}"#]));
    assert!(matches!(&executor.clients()[..], [ClientKey::Session(a), ClientKey::Session(b)] if a == b));
}

#[tokio::test]
async fn every_connection_is_another_client() {
    let executor = BehaviorExecutor::default();
    for _ in 0..2 {
        let mut client = opened(&executor, &["ask"], ALL).await;
        called(&mut client, "ask", &[r#""result":{"action":"decline"}"#]).await;
    }
    let clients = executor.clients();
    assert_eq!(clients.len(), 2);
    assert_ne!(clients[0], clients[1]);
}

#[tokio::test]
async fn clients_are_not_asked_what_they_did_not_declare() {
    for (capabilities, tool, expected) in [
        ("{}", "ask", "no way"),
        ("{}", "who", "None None"),
        (r#"{"roots":{}}"#, "ask", "the client cannot be asked this"),
        (
            r#"{"elicitation":{}}"#,
            "sample",
            "the client cannot be asked this",
        ),
        (
            ALL,
            "who",
            r#"Some("{\"elicitation\":{\"form\":{},\"url\":{}},\"sampling\":{\"x\":1e2},\"roots\":{}}") None"#,
        ),
    ] {
        let mut client = opened(&BehaviorExecutor::default(), &[tool], capabilities).await;
        let answer = called(&mut client, tool, &[]).await;
        let text = said(&answer)[0].as_str().unwrap_or_default().to_owned();
        assert!(text.starts_with(expected), "{capabilities} {tool}: {text}");
    }
}

#[tokio::test]
async fn input_of_a_modern_upstream_is_requested_from_a_legacy_client() {
    let executor = BehaviorExecutor::default();
    let mut client = opened(&executor, &["input"], ALL).await;
    let answers = [
        r#""result":{"action":"accept","content":{"n":1e2}}"#,
        r#""result":{"roots":[]}"#,
    ];
    let answer = called(&mut client, "input", &answers).await;
    assert_eq!(
        said(&answer),
        &json!([r#"{"name":{"action":"accept","content":{"n":1e2}},"roots":{"roots":[]}} "upstream state""#])
    );
    assert_eq!(executor.n_calls(), 2);
    // The call ends with a refusal, and with a question that the client cannot be asked.
    let refused = called(&mut client, "input", &[r#""error":{"code":-1,"message":"no"}"#]).await;
    let why = &refused["result"]["_meta"]["dev.toolplane/error"];
    assert_eq!(why["kind"], json!("cancelled"), "{refused}");
    for capabilities in ["{}", r#"{"roots":{}}"#] {
        let mut client = opened(&executor, &["input"], capabilities).await;
        let answer = called(&mut client, "input", &[]).await;
        assert_eq!(
            answer["result"]["isError"],
            json!(true),
            "{capabilities}: {answer}"
        );
        // A permanent failure: the error names the missing capability and forbids a retry.
        let why = &answer["result"]["_meta"]["dev.toolplane/error"];
        assert_eq!(why["kind"], json!("missing_capability"), "{answer}");
        assert_eq!(why["retryable"], json!(false), "{answer}");
        assert_eq!(
            why["detail"],
            json!({"requiredCapabilities": {"elicitation": {}}}),
            "{answer}"
        );
        let text = answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_default();
        assert!(
            text.contains("this needs the capability `elicitation.form`, which the client did not declare"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_call_ends_after_the_maximum_number_of_rounds() {
    let executor = BehaviorExecutor::default();
    let mut client = opened(&executor, &["insatiable"], ALL).await;
    // The last round is not asked for, since no call would use its answers.
    let answers = [r#""result":{"roots":[]}"#; 15];
    let answer = called(&mut client, "insatiable", &answers).await;
    let why = &answer["result"]["_meta"]["dev.toolplane/error"];
    assert_eq!(why["kind"], json!("protocol"), "{answer}");
    assert_eq!(executor.n_calls(), 16);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_client_has_a_timeout() {
    let executor = BehaviorExecutor::default();
    let mut client = opened(&executor, &["ask"], ALL).await;
    client
        .send(r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"ask"}}"#)
        .await;
    assert!(client.receive().await.contains("elicitation/create"));
    tokio::time::sleep(Duration::from_secs(601)).await;
    // The question is withdrawn, and the call continues without an answer, long after its own timeout.
    let taken_back = client.receive().await;
    assert!(taken_back.contains("notifications/cancelled"), "{taken_back}");
    assert!(client.receive().await.contains("the client did not answer"));
}

#[tokio::test]
async fn cancelling_the_call_withdraws_its_question() {
    let executor = BehaviorExecutor::default();
    let mut client = opened(&executor, &["ask"], ALL).await;
    client
        .send(r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"ask"}}"#)
        .await;
    assert!(client.receive().await.contains("elicitation/create"));
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}"#)
        .await;
    let taken_back = client.receive().await;
    assert!(
        taken_back.contains(r#"notifications/cancelled","params":{"requestId":1}"#),
        "{taken_back}"
    );
    assert_eq!(executor.n_running(), 0);
}

#[tokio::test]
async fn log_messages_come_under_the_level_that_was_set() {
    let mut client = opened(&BehaviorExecutor::default(), &["log"], "{}").await;
    assert_eq!(said(&called(&mut client, "log", &[]).await), &json!(["logged"]));
    client.result("logging/setLevel", r#""level":"info""#).await;
    client
        .send(r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"log"}}"#)
        .await;
    assert_eq!(
        client.receive().await,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","data":{"n":1e2}}}"#
    );
    assert!(client.receive().await.contains("logged"));
}

#[tokio::test]
async fn a_page_visit_is_an_error_for_clients_that_declared_it() {
    let mut client = opened(&BehaviorExecutor::default(), &["visit"], ALL).await;
    let answer = client.ask("tools/call", r#""name":"visit""#).await;
    assert!(
        answer.ends_with(
            r#""error":{"code":-32042,"message":"visit","data":{"elicitations":[{"elicitationId":"e","mode":"url","url":"https://example.com/a","message":"log in","x":1e2}]}}}"#
        ),
        "{answer}"
    );
    for capabilities in ["{}", r#"{"elicitation":{}}"#] {
        let mut client = opened(&BehaviorExecutor::default(), &["visit"], capabilities).await;
        let answer = client.value("tools/call", r#""name":"visit""#).await;
        assert_eq!(
            answer["result"]["isError"],
            json!(true),
            "{capabilities}: {answer}"
        );
    }
}

#[tokio::test]
async fn extra_params_of_a_tool_call_are_forwarded() {
    let mut client = opened(&BehaviorExecutor::default(), &["who"], "{}").await;
    let meta =
        r#""_meta":{"progressToken":1,"io.modelcontextprotocol/x":1,"vendor/y": 1e2,"traceparent":"00-a"}"#;
    let answer = client
        .value("tools/call", &format!(r#""name":"who",{meta}"#))
        .await;
    let text = said(&answer)[0].as_str().unwrap_or_default();
    assert!(text.contains(r#"\"vendor/y\": 1e2"#), "{text}");
    assert!(
        !text.contains("progressToken") && !text.contains("modelcontextprotocol"),
        "{text}"
    );
}
