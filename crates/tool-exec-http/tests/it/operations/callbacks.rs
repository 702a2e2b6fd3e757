//! Work whose API calls back.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tool_core::{DispatchState, ErrorKind, Outcome};
use tool_exec_http::{CallbackError, Operations};

use super::{Api, SHORT, context_within, invoke};
use crate::support::{LONG, Prepared, Values, descriptor, executor, prepare_by};

/// Returns a tool whose API calls back, and where its callbacks arrive.
fn calling_back(api: &Api, operation: &Value) -> (Prepared, Operations) {
    let executor = executor(Values::new(&[("${secret:KEY}", "hunter2-hunter2")]));
    executor
        .operations()
        .receive_callbacks(Some("https://tools.example/callbacks/"))
        .expect("a URL");
    let mut settings = api.settings(operation);
    settings["body"] = json!({"notify": "{callback_url}", "table": "{table}", "key": "${secret:KEY}"});
    let tool = prepare_by(&executor, descriptor(settings)).expect("a tool");
    (tool, executor.operations().clone())
}

/// Waits for the first request, and returns the token that it was told.
async fn token(api: &Api) -> String {
    loop {
        if let Some(request) = api.server.requests().first() {
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            let url = body["notify"].as_str().expect("a URL").to_owned();
            return url
                .strip_prefix("https://tools.example/callbacks/")
                .expect("below it")
                .to_owned();
        }
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn an_api_calls_back_once() {
    let api = Api::start((200, "", r#"{"id":7}"#), vec![(404, "", "")]).await;
    let (tool, operations) = calling_back(
        &api,
        &json!({"callback": true, "result": "$.rows", "done": "rows"}),
    );
    // The URL replaces an argument of its name.
    let mut cx = tool.context(r#"{"table":"orders","callback_url":"https://evil.example/"}"#);
    let call = tokio::spawn(async move { tool.invoke().invoke_boxed(&mut cx).await });
    let token = token(&api).await;
    assert_eq!(token.len(), 32, "128 bits: {token}");
    assert_eq!(
        operations.deliver("0123", b"{}".to_vec()),
        Err(CallbackError::Unknown)
    );
    assert_eq!(
        operations.deliver(&token, b"{".to_vec()),
        Err(CallbackError::NotJson)
    );
    // A callback is the last answer, also one that `done` is false for.
    let body = br#"{"rows":[],"echo":"hunter2-hunter2"}"#.to_vec();
    assert_eq!(operations.deliver(&token, body.clone()), Ok(()));
    assert_eq!(operations.deliver(&token, body), Err(CallbackError::Unknown));
    match timeout(LONG, call).await.expect("it ends").unwrap() {
        Ok(Outcome::Reply(reply)) => assert_eq!(reply.text(), "[]"),
        other => panic!("{other:?}"),
    }
    assert_eq!(api.lines(), ["POST /jobs"]);
}

#[tokio::test]
async fn secrets_in_a_callback_are_hidden() {
    let api = Api::start((200, "", ""), vec![(404, "", "")]).await;
    let (tool, operations) = calling_back(&api, &json!({"callback": true}));
    let mut cx = tool.context("{}");
    let call = tokio::spawn(async move { tool.invoke().invoke_boxed(&mut cx).await });
    let token = token(&api).await;
    operations
        .deliver(&token, br#"{"echo":"hunter2-hunter2"}"#.to_vec())
        .expect("it is awaited");
    let outcome = timeout(LONG, call)
        .await
        .expect("it ends")
        .unwrap()
        .expect("a result");
    let text = outcome.into_reply().expect("a reply").raw().to_string();
    assert!(text.contains("echo") && !text.contains("hunter2"), "{text}");
}

/// A callback that arrives while no call waits is not lost.
#[tokio::test]
async fn a_callback_reaches_parked_work() {
    let api = Api::start((202, "", ""), vec![(404, "", "")]).await;
    let (tool, operations) = calling_back(&api, &json!({"callback": true}));
    let (outcome, _) = invoke(&tool, context_within(&tool, "{}", SHORT)).await;
    assert!(matches!(outcome, Ok(Outcome::Pending(_))), "{outcome:?}");
    let token = token(&api).await;
    assert_eq!(operations.deliver(&token, b"7".to_vec()), Ok(()));
    assert_eq!(tool.call(json!({})).await.text(), "7");
    assert_eq!(api.n_begun(), 1);
}

#[tokio::test]
async fn without_a_receiver_a_tool_that_needs_callbacks_says_so() {
    let api = Api::start((202, "", ""), vec![(404, "", "")]).await;
    let (tool, operations) = calling_back(&api, &json!({"callback": true}));
    operations
        .receive_callbacks(None)
        .expect("no URL is no invalid one");
    let done = tool.call(json!({})).await;
    assert_eq!(done.kind(), ErrorKind::Unavailable);
    assert!(
        done.error().message().contains("gateway.public_url"),
        "{}",
        done.error()
    );
    assert_eq!(done.dispatch, DispatchState::NotSent);
    assert!(api.lines().is_empty());
    assert_eq!(
        operations.receive_callbacks(Some("tools.example")),
        Err(CallbackError::InvalidUrl)
    );
    // A preview issues nothing.
    let shown = tool
        .invoke()
        .preview_boxed(&tool.context("{}"))
        .await
        .unwrap()
        .expect("a preview");
    let shown = shown.to_json().to_string();
    assert!(
        shown.contains("https://callback.invalid/") && !shown.contains("hunter2"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_callback_url_expires_with_its_work() {
    let api = Api::start((202, "", ""), vec![(404, "", "")]).await;
    let (tool, operations) = calling_back(
        &api,
        &json!({"callback": true, "interval": "100ms", "expires": "300ms"}),
    );
    let (outcome, _) = invoke(&tool, context_within(&tool, "{}", SHORT)).await;
    assert!(matches!(outcome, Ok(Outcome::Pending(_))), "{outcome:?}");
    let token = token(&api).await;
    assert!(operations.awaits(&token));
    sleep(Duration::from_millis(400)).await;
    assert!(!operations.awaits(&token));
    assert_eq!(
        operations.deliver(&token, b"7".to_vec()),
        Err(CallbackError::Unknown)
    );
}
