//! Requests, messages and notifications to clients over stdio.

use mcp_server::{Notifier, StdioOptions};

use crate::{
    stdio::Client,
    support::{EVERYTHING, META, raw},
};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"t","version":"0"}}}"#;
const ASK: &str = r#"{"jsonrpc":"2.0","id":"call","method":"test/ask","params":{"method":"roots/list"}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":"ping","method":"ping"}"#;

#[tokio::test]
async fn a_legacy_client_is_asked_and_told() {
    let mut client = Client::start(StdioOptions::default());
    client.log.offer(EVERYTHING);
    client.ask(INITIALIZE).await;
    let question = client.ask(ASK).await;
    assert_eq!(question, r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
    // Other requests go on meanwhile, and a response without a request is ignored.
    client.send(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#).await;
    assert!(client.ask(PING).await.contains("\"ping\""));
    let answer = client
        .ask(r#"{"jsonrpc":"2.0","id":"1","result":{"roots":[]}}"#)
        .await;
    assert_eq!(
        answer,
        r#"{"jsonrpc":"2.0","id":"call","result":{"given":{"roots":[]}}}"#
    );
    client
        .ask(r#"{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"error"}}"#)
        .await;
    let message = client
        .ask(r#"{"jsonrpc":"2.0","id":3,"method":"test/log"}"#)
        .await;
    assert_eq!(
        message,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1e2}}"#
    );
    assert!(client.receive().await.contains(r#"{"wanted":"error"}"#));
    let log = client.log.clone();
    assert!(log.ended.lock().unwrap().is_empty());
    assert!(client.finish().await.is_empty());
    // The service was notified.
    assert_eq!(log.ended.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_cancelled_call_takes_its_question_with_it() {
    let mut client = Client::start(StdioOptions::default());
    client.ask(INITIALIZE).await;
    client.ask(ASK).await;
    let void = client
        .ask(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"call"}}"#)
        .await;
    assert_eq!(
        void,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#
    );
    assert!(client.finish().await.is_empty());
}

#[tokio::test]
async fn a_modern_client_subscribes() {
    let notices = Notifier::default();
    let mut client = Client::start(StdioOptions::default().notifier(notices.clone()));
    client.log.offer(EVERYTHING);
    let listen = |id: u8, filter: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"notifications":{filter},{META}}}}}"#
        )
    };
    let acknowledged = client.ask(&listen(1, r#"{"toolsListChanged":true}"#)).await;
    assert!(
        acknowledged.contains(r#""method":"notifications/subscriptions/acknowledged""#),
        "{acknowledged}"
    );
    client
        .ask(&listen(2, r#"{"resourceSubscriptions":["test:a"]}"#))
        .await;
    notices.send("notifications/tools/list_changed", None);
    assert_eq!(
        client.receive().await,
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#
    );
    notices.send(
        "notifications/resources/updated",
        Some(&raw(r#"{"uri":"test:a"}"#)),
    );
    assert!(
        client
            .receive()
            .await
            .contains(r#""_meta":{"io.modelcontextprotocol/subscriptionId":2}"#)
    );
    // A cancelled subscription has no response; the other one ends with the connection.
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .await;
    assert_eq!(
        client.finish().await,
        [
            r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":2}}}"#
        ]
    );
    assert!(notices.subscribed_uris().is_empty());
}

#[tokio::test]
async fn of_each_resource_the_latest_is_told_however_many_change_at_once() {
    let watch = r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"test:all/"}}"#;
    let listen = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{{"notifications":{{"resourceSubscriptions":["test:all/"]}},{META}}}}}"#
    );
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    for lines in [&[INITIALIZE, watch][..], &[&listen]] {
        let notices = Notifier::default();
        let mut client = Client::start(StdioOptions::default().notifier(notices.clone()));
        client.log.offer(EVERYTHING);
        for line in lines {
            client.ask(line).await;
        }
        client.send(ready).await;
        client.ask(PING).await;
        // No frame is written meanwhile.
        for number in 0..600 {
            let params = raw(&format!(r#"{{"uri":"test:all/{number}"}}"#));
            notices.send("notifications/resources/updated", Some(&params));
        }
        for number in 0..600 {
            let told = client.receive().await;
            assert!(
                told.contains(&format!("\"test:all/{number}\"")),
                "{number}: {told}"
            );
        }
        // The connection can end.
        client.finish().await;
    }
}
