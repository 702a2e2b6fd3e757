//! Tests of calls of tools: both eras behave alike.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use mcp_client::{
    ClientError, ClientErrorKind, Connection, ConnectionOptions, Handlers, RequestOptions, ToolResult,
    serde_json::{Value, json},
};
use raw_json::RawJson;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::support::peer::{Peer, connect, connect_modern, connect_with, within};

#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct Place {
    city: String,
}

/// Client that accepts every question with its defaults.
fn accepting() -> ConnectionOptions {
    let accept =
        |content| RawJson::from_members(&[("action", RawJson::from("accept")), ("content", content)]);
    let handlers = Handlers::new().elicitation(RawJson::object(), move |request| async move {
        Ok(accept(request.defaults()))
    });
    ConnectionOptions::default().handlers(handlers)
}

const QUESTION: &str = r#"{"message":"Where?","requestedSchema":{"type":"object","properties":{"city":{"type":"string","default":"Riga"}}}}"#;

/// Starts a call of `forecast` in a task of its own.
fn call(
    connection: &Connection,
    arguments: impl Serialize + Send + Sync + 'static,
) -> JoinHandle<Result<ToolResult, ClientError>> {
    let connection = connection.clone();
    tokio::spawn(async move { connection.call_tool("forecast", &arguments, within(20)).await })
}

/// Next message, which must be a call. Returns its id and params.
async fn called(peer: &mut Peer) -> (u64, Value) {
    let message = peer.next().await;
    assert_eq!(message["method"], "tools/call", "{message}");
    (message["id"].as_u64().unwrap(), message["params"].clone())
}

/// Result of a call that is answered with this text.
async fn answered(result: &str) -> ToolResult {
    let (connection, mut peer) = connect().await;
    let call = call(&connection, json!({}));
    let (id, _) = called(&mut peer).await;
    peer.answer(id, result).await;
    call.await.unwrap().unwrap()
}

#[tokio::test]
async fn arguments_are_serialized() {
    let (connection, mut peer) = connect().await;
    let city = "Rī\"ga".to_owned();
    let outcome = call(&connection, Place { city: city.clone() });
    let (id, params) = called(&mut peer).await;
    assert_eq!(params, json!({"name": "forecast", "arguments": {"city": city}}));
    peer.answer(id, r#"{"content":[]}"#).await;
    assert_eq!(
        outcome.await.unwrap().unwrap().raw().as_str(),
        r#"{"content":[]}"#
    );

    let outcome = call(&connection, ());
    let (id, params) = called(&mut peer).await;
    assert_eq!(params, json!({"name": "forecast"}));
    peer.answer(id, "{}").await;
    assert_eq!(outcome.await.unwrap().unwrap().text(), "");
}

#[tokio::test]
async fn arguments_that_are_no_object_are_not_sent() {
    let (connection, mut peer) = connect().await;
    let error = connection
        .call_tool("forecast", &["Riga"], RequestOptions::default())
        .await
        .unwrap_err();
    assert!(matches!(error.kind(), ClientErrorKind::Invalid(_)), "{error:?}");
    assert!(!error.was_sent());
    // The next message is a call that comes after it.
    let outcome = call(&connection, json!({"n": 2}));
    let (id, params) = called(&mut peer).await;
    assert_eq!(params["arguments"], json!({"n": 2}));
    peer.answer(id, "{}").await;
    outcome.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_legacy_server_asks_during_the_call() {
    let (connection, mut peer) = connect_with(accepting(), 64 * 1024).await;
    let outcome = call(&connection, json!({}));
    let (id, _) = called(&mut peer).await;
    peer.send(format!(
        r#"{{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{QUESTION}}}"#
    ))
    .await;
    let reply = peer.next().await;
    assert_eq!(
        reply["result"],
        json!({"action": "accept", "content": {"city": "Riga"}})
    );
    peer.answer(id, r#"{"content":[{"type":"text","text":"sunny"}]}"#)
        .await;
    assert_eq!(outcome.await.unwrap().unwrap().text(), "sunny");
}

#[tokio::test]
async fn a_modern_server_asks_between_the_rounds_of_the_call() {
    let (connection, mut peer) = connect_modern(accepting()).await;
    let outcome = call(&connection, json!({"day": 1}));
    let (id, params) = called(&mut peer).await;
    assert_eq!(params["arguments"], json!({"day": 1}));
    peer.answer(
        id,
        &format!(
            r#"{{"resultType":"input_required","requestState":"s","inputRequests":{{"where":{{"method":"elicitation/create","params":{QUESTION}}}}}}}"#
        ),
    )
    .await;
    let (id, params) = called(&mut peer).await;
    assert_eq!(params["arguments"], json!({"day": 1}));
    assert_eq!(params["requestState"], "s");
    assert_eq!(
        params["inputResponses"],
        json!({"where": {"action": "accept", "content": {"city": "Riga"}}})
    );
    peer.answer(
        id,
        r#"{"resultType":"complete","content":[{"type":"text","text":"sunny"}]}"#,
    )
    .await;
    assert_eq!(outcome.await.unwrap().unwrap().text(), "sunny");
}

#[tokio::test]
async fn progress_is_reported_in_both_eras() {
    for connected in [
        connect().await,
        connect_modern(ConnectionOptions::default()).await,
    ] {
        let (connection, mut peer) = connected;
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let sink = Arc::clone(&seen);
        let options = within(20).on_progress(move |report| {
            sink.lock()
                .unwrap()
                .push(report.get("progress").unwrap().to_string());
        });
        let outcome = tokio::spawn({
            let connection = connection.clone();
            async move { connection.call_tool("forecast", &json!({}), options).await }
        });
        let (id, params) = called(&mut peer).await;
        let token = &params["_meta"]["progressToken"];
        peer.send(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":0.50}}}}"#
        ))
        .await;
        peer.answer(id, "{}").await;
        outcome.await.unwrap().unwrap();
        assert_eq!(*seen.lock().unwrap(), ["0.50"]);
    }
}

#[tokio::test]
async fn a_tool_that_fails_says_so_in_its_result() {
    let result = answered(
        r#"{"content":[{"type":"text","text":"no such city"}],"isError":true,"structuredContent":{"city":"?"}}"#,
    )
    .await;
    assert!(result.is_error());
    assert_eq!(result.text(), "no such city");
    let error = result.structured::<Place>().unwrap_err();
    assert!(matches!(error.kind(), ClientErrorKind::ToolFailed(text) if text == "no such city"));
    assert_eq!(error.to_string(), "the tool reports an error: no such city");
}

#[tokio::test]
async fn structured_content_is_typed() {
    let result = answered(
        r#"{"content":[{"type":"image","data":"","mimeType":"image/png","text":"no"},{"type":"text","text":"a"},{"type":"text","text":"b"}],"structuredContent":{"city":"Riga"}}"#,
    )
    .await;
    assert!(!result.is_error());
    let city = "Riga".to_owned();
    assert_eq!(result.structured::<Place>().unwrap(), Place { city });
    assert_eq!((result.text().as_str(), result.content().len()), ("a\nb", 3));
    let error = result.structured::<Vec<u8>>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the structured content of the tool does not fit its type"
    );
    assert!(std::error::Error::source(&error).is_some());

    let error = answered("{}").await.structured::<Place>().unwrap_err();
    assert!(matches!(error.kind(), ClientErrorKind::Protocol(_)), "{error:?}");
}

#[tokio::test]
async fn a_task_that_nobody_asked_for_is_an_error() {
    for (connected, answer) in [
        (connect().await, r#"{"task":{"taskId":"1","status":"working"}}"#),
        (
            connect_modern(ConnectionOptions::default()).await,
            r#"{"resultType":"task","taskId":"1","status":"working"}"#,
        ),
    ] {
        let (connection, mut peer) = connected;
        let outcome = call(&connection, json!({}));
        let (id, params) = called(&mut peer).await;
        assert!(params.get("task").is_none(), "{params}");
        peer.answer(id, answer).await;
        let error = outcome.await.unwrap().unwrap_err();
        assert!(
            matches!(error.kind(), ClientErrorKind::Unsupported(_)),
            "{error:?}"
        );
        assert!(error.was_sent());
    }
}

#[tokio::test(start_paused = true)]
async fn a_time_limit_is_told_as_it_was_set() {
    let (connection, _peer) = connect().await;
    let options = RequestOptions::with_timeout(Duration::from_millis(300));
    let error = connection.call_tool("forecast", &(), options).await.unwrap_err();
    assert!(matches!(error.kind(), ClientErrorKind::Timeout(limit) if limit.as_millis() == 300));
    assert_eq!(error.to_string(), "no answer within 300 ms");
}
