//! Calls that need an approval, for clients of both eras.

use std::sync::Arc;

use serde_json::{Value, json};
use toolplane::{
    Toolplane,
    core::{Feature, Pattern},
    manifest::Configuration,
    policy::{ApprovalLayer, ApprovalVerdict},
};
use toolplane_gateway::{Gateway, GatewayOptions, OperatorClient, OperatorClientError};

use crate::support::{BehaviorExecutor, ChangingSource, Client, Http, behavior_tool, modern};

const FORMS: &str = r#"{"elicitation":{"form":{}},"roots":{}}"#;

/// A toolplane whose calls all need an approval, by another principal than the caller if `by_another` is set.
fn plane(executor: &BehaviorExecutor, tools: &[&str], by_another: bool) -> Toolplane {
    let mut configuration = Configuration::default();
    configuration.policy.approval.required = vec![Pattern::new("*")];
    configuration.policy.approval.separate_approver = by_another;
    let builder = Toolplane::builder()
        .configuration(configuration)
        .executor(Arc::new(executor.clone()));
    let builder = tools
        .iter()
        .fold(builder, |builder, tool| builder.tool(behavior_tool(tool)));
    builder.build().expect("it can be set up")
}

async fn call(client: &mut Client, tool: &str, capabilities: &str, more: &str) -> Value {
    let params = format!(r#""name":"{tool}"{more},{}"#, modern(capabilities));
    client.value("tools/call", &params).await
}

/// Returns the parameters of the next round: one answer, by its key, and the state of the last round.
fn given(key: &str, answer: &str, last: &Value) -> String {
    let state = &last["result"]["requestState"];
    assert!(state.is_string(), "no state: {last}");
    format!(r#","inputResponses":{{"{key}":{answer}}},"requestState":{state}"#)
}

fn said(answer: &Value) -> &Value {
    &answer["result"]["structuredContent"]["said"]
}

const YES: &str = r#"{"action":"accept","content":{"approve":true}}"#;
const NO: &str = r#"{"action":"accept","content":{"approve":false}}"#;

/// Returns the details of a pending call.
fn pending(answer: &Value) -> &Value {
    assert_eq!(answer["result"]["isError"], json!(true), "{answer}");
    let pending = &answer["result"]["_meta"]["dev.toolplane/pending"];
    assert_eq!(pending["state"], json!("pending"), "{answer}");
    pending
}

#[tokio::test]
async fn a_modern_client_is_asked_by_the_answer_and_approves_with_the_next_request() {
    let executor = BehaviorExecutor::default();
    let mut client = Client::new(plane(&executor, &["who"], false));
    let asked = call(&mut client, "who", FORMS, "").await;
    assert_eq!(asked["result"]["resultType"], json!("input_required"), "{asked}");
    let question = &asked["result"]["inputRequests"]["approval"];
    assert_eq!(question["method"], json!("elicitation/create"));
    let message = question["params"]["message"].as_str().expect("a text");
    assert!(
        message.contains("Tool: who") && message.contains("\n    {}"),
        "{message}"
    );
    assert_eq!(executor.n_calls(), 0);
    let yes = given("approval", YES, &asked);
    let answer = call(&mut client, "who", FORMS, &yes).await;
    assert_eq!(answer["result"]["resultType"], json!("complete"), "{answer}");
    assert_eq!(executor.n_calls(), 1);
    // An answer can be used once.
    let again = call(&mut client, "who", FORMS, &yes).await;
    assert_eq!(again["result"]["isError"], json!(true), "{again}");
    assert_eq!(
        again["result"]["_meta"]["dev.toolplane/error"]["kind"],
        json!("denied")
    );
    // An answer is valid for the same arguments only.
    let asked = call(&mut client, "who", FORMS, "").await;
    let others = format!(r#","arguments":{{"a":1}}{}"#, given("approval", YES, &asked));
    let refused = call(&mut client, "who", FORMS, &others).await;
    assert!(refused.get("error").is_some(), "{refused}");
    // A denied call is not asked about again.
    let refused = call(&mut client, "who", FORMS, &given("approval", NO, &asked)).await;
    assert_eq!(
        refused["result"]["_meta"]["dev.toolplane/error"]["kind"],
        json!("denied")
    );
    let late = call(&mut client, "who", FORMS, &given("approval", YES, &asked)).await;
    assert_eq!(
        late["result"]["_meta"]["dev.toolplane/error"]["kind"],
        json!("denied")
    );
    assert_eq!(executor.n_calls(), 1);
}

#[tokio::test]
async fn one_approval_covers_all_rounds_of_a_call() {
    let executor = BehaviorExecutor::default();
    let mut client = Client::new(plane(&executor, &["input", "ask"], false));
    // A modern tool, whose round ends with a question.
    let asked = call(&mut client, "input", FORMS, "").await;
    let round = call(&mut client, "input", FORMS, &given("approval", YES, &asked)).await;
    assert!(round["result"]["inputRequests"].get("name").is_some(), "{round}");
    let answers = given("name", r#"{"action":"accept"}"#, &round);
    let last = call(&mut client, "input", FORMS, &answers).await;
    assert_eq!(
        said(&last),
        &json!([r#"{"name":{"action":"accept"}} "upstream state""#]),
        "{last}"
    );
    let again = call(&mut client, "input", FORMS, &answers).await;
    assert_eq!(
        again["result"]["_meta"]["dev.toolplane/error"]["kind"],
        json!("denied"),
        "{again}"
    );
    assert_eq!(executor.n_calls(), 2);
    // A legacy tool, which asks in the middle of a call.
    let asked = call(&mut client, "ask", FORMS, "").await;
    let parked = call(&mut client, "ask", FORMS, &given("approval", YES, &asked)).await;
    let answers = given("question-1", r#"{"action":"decline"}"#, &parked);
    let last = call(&mut client, "ask", FORMS, &answers).await;
    assert_eq!(said(&last), &json!([r#"{"action":"decline"}"#]), "{last}");
    assert_eq!(executor.n_calls(), 3);
}

#[tokio::test]
async fn a_legacy_client_is_asked_while_its_call_waits() {
    let executor = BehaviorExecutor::default();
    let mut client = Client::new(plane(&executor, &["who", "input"], false));
    client.initialize(FORMS).await;
    let send = async |client: &mut Client, tool: &str, answers: &[&str]| -> Value {
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
    };
    let yes = format!(r#""result":{YES}"#);
    let answer = send(&mut client, "who", &[&yes]).await;
    assert!(said(&answer).is_array(), "{answer}");
    let refused = send(&mut client, "who", &[r#""result":{"action":"decline"}"#]).await;
    assert_eq!(
        refused["result"]["_meta"]["dev.toolplane/error"]["kind"],
        json!("denied")
    );
    assert_eq!(executor.n_calls(), 1);
    // One approval for all rounds, which are requests of their own here.
    let rounds = [
        yes.as_str(),
        r#""result":{"action":"accept"}"#,
        r#""result":{"roots":[]}"#,
    ];
    let answer = send(&mut client, "input", &rounds).await;
    assert!(said(&answer).is_array(), "{answer}");
    assert_eq!(executor.n_calls(), 3);
    // If the client does not answer, others decide.
    let error = r#""error":{"code":-32603,"message":"no window"}"#;
    let waiting = send(&mut client, "who", &[error]).await;
    pending(&waiting);
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_gets_a_handle_and_repeats_the_approved_call() {
    for is_modern in [true, false] {
        let executor = BehaviorExecutor::default();
        let plane = plane(&executor, &["who"], false);
        let mut client = Client::new(plane.clone());
        if !is_modern {
            client.initialize("{}").await;
        }
        let meta = |more: &str| match is_modern {
            true => {
                let meta = modern("{}");
                format!(r#"{}{more}}}"#, meta.strip_suffix('}').expect("an object"))
            }
            false => format!(r#""_meta":{{{}}}"#, more.trim_start_matches(',')),
        };
        let params = |more: &str| format!(r#""name":"who",{}"#, meta(more));
        let waiting = client.value("tools/call", &params("")).await;
        let handle = pending(&waiting)["handle"].as_str().expect("a handle").to_owned();
        let text = waiting["result"]["content"][0]["text"].as_str().expect("a text");
        assert!(text.starts_with("pending: nothing was done yet"), "{text}");
        assert_eq!(executor.n_calls(), 0);
        let by_handle = params(&format!(r#","{}":"{handle}""#, ApprovalLayer::META_KEY));
        // The call is still pending.
        pending(&client.value("tools/call", &by_handle).await);
        let decided = plane
            .approvals()
            .decide(&handle, ApprovalVerdict::Approve, "operator");
        decided.await.expect("can be decided");
        let answer = client.value("tools/call", &by_handle).await;
        // Only its owner can use the handle.
        assert_eq!(said(&answer), &json!(["None None"]));
        let again = client.value("tools/call", &by_handle).await;
        assert_eq!(
            again["result"]["_meta"]["dev.toolplane/error"]["kind"],
            json!("denied")
        );
        assert_eq!(executor.n_calls(), 1);
    }
}

#[tokio::test]
async fn operators_decide_through_a_socket() {
    let executor = BehaviorExecutor::default();
    let plane = plane(&executor, &["who"], true);
    let directory = tempfile::TempDir::new().expect("a directory");
    let path = directory.path().join("s.sock");
    let listener = tokio::net::UnixListener::bind(&path).expect("a socket");
    let gateway = Gateway::new(plane, GatewayOptions::default());
    let serving = gateway.clone();
    tokio::spawn(async move { serving.serve_operator(listener, std::future::pending()).await });
    let connect = async || OperatorClient::connect(&path).await.expect("somebody listens");
    assert!(connect().await.approvals().await.expect("a list").is_empty());
    let mut client = Client::on(gateway);
    client.initialize("{}").await;
    let arguments = r#""name":"who","arguments":{"n":1e2}"#;
    pending(&client.value("tools/call", arguments).await);
    let all = connect().await.approvals().await.expect("a list");
    assert_eq!(all.len(), 1);
    assert_eq!(
        all[0].get("arguments").expect("arguments").as_str(),
        r#"{"n":1e2}"#
    );
    let handle = all[0]
        .get("handle")
        .and_then(|handle| handle.string())
        .expect("a handle");
    let decide = async |handle: &str, by: &str, is_approved| {
        connect()
            .await
            .decide(handle, is_approved, by, Some("because"))
            .await
    };
    for (handle, by, is_approved, expected) in [
        ("none", "boss", true, Err("not_found")),
        (handle.as_str(), "local", true, Err("denied")),
        (&handle, "boss", true, Ok("approved")),
        (&handle, "boss", false, Err("decided")),
        ("../../approvals", "boss", false, Err("usage")),
    ] {
        match (decide(handle, by, is_approved).await, expected) {
            (Ok(approval), Ok(state)) => {
                let text = approval.get("state").and_then(|state| state.string());
                assert_eq!(text.as_deref(), Some(state));
            }
            (Err(OperatorClientError::Refused { kind, .. }), Err(expected)) => assert_eq!(kind, expected),
            (result, expected) => panic!("{handle} {by}: {result:?}, expected {expected:?}"),
        }
    }
    assert!(said(&client.value("tools/call", arguments).await).is_array());
    assert_eq!(executor.n_calls(), 1);
}

#[tokio::test]
async fn the_client_is_not_asked_if_a_separate_approver_must_decide() {
    let executor = BehaviorExecutor::default();
    let mut client = Client::new(plane(&executor, &["who"], true));
    pending(&call(&mut client, "who", FORMS, "").await);
    assert_eq!(executor.n_calls(), 0);
}

#[tokio::test]
async fn an_approval_belongs_to_its_principal() {
    let executor = BehaviorExecutor::default();
    let plane = plane(&executor, &["who"], false);
    let http = Http::new(plane.clone());
    let asked = http.call("ann", "who", "").await;
    let stolen = http.call("eve", "who", &given("approval", YES, &asked)).await;
    assert!(stolen.get("error").is_some(), "{stolen}");
    let handle = plane.approvals().list().await.expect("it works")[0]
        .handle
        .clone();
    let decided = plane
        .approvals()
        .decide(&handle, ApprovalVerdict::Approve, "operator");
    decided.await.expect("can be decided");
    // Ann's client is not asked again, but Eve's is.
    let asked = http.call("eve", "who", "").await;
    assert_eq!(asked["result"]["resultType"], json!("input_required"), "{asked}");
    assert_eq!(executor.n_calls(), 0);
    let answer = http.call("ann", "who", "").await;
    assert!(said(&answer).is_array(), "{answer}");
    assert_eq!(executor.n_calls(), 1);
}

#[tokio::test]
async fn pending_calls_of_other_features_are_errors() {
    let executor = BehaviorExecutor::default();
    let changing = ChangingSource::new(&[]);
    changing.set_others(&[(Feature::Prompt, "greet"), (Feature::Resource, "mem://a")]);
    let mut configuration = Configuration::default();
    configuration.policy.approval.required = vec![Pattern::new("*")];
    let plane = Toolplane::builder()
        .configuration(configuration)
        .executor(Arc::new(executor.clone()))
        .source(changing)
        .build()
        .expect("it can be set up");
    let mut client = Client::new(plane);
    client.initialize("{}").await;
    for (method, params) in [
        ("prompts/get", r#""name":"greet""#),
        ("resources/read", r#""uri":"mem://a""#),
    ] {
        let waiting = client.value(method, params).await;
        let pending = &waiting["error"]["data"]["dev.toolplane/pending"];
        assert!(pending["handle"].is_string(), "{waiting}");
    }
    assert_eq!(executor.n_calls(), 0);
}
