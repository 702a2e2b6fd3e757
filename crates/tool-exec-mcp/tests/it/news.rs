//! News of resources.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tool_core::{ErrorKind, Source};
use tool_exec_mcp::McpServer;

use crate::{
    client::{asker, until},
    fixture::{Call, Fixture, NoSecrets},
};

/// A server's news as they come.
fn listening(source: &dyn Source) -> Arc<Mutex<Vec<String>>> {
    let news = Arc::new(Mutex::new(Vec::new()));
    let told = news.clone();
    source.on_update(Arc::new(move |update| {
        told.lock().unwrap().push(update.to_string());
    }));
    news
}

#[tokio::test]
async fn news_of_a_resource_come_with_their_own_bytes_until_nobody_wants_them() {
    let fixture = Fixture::new(&[]);
    let server = McpServer::new(asker(&fixture, ""), Arc::new(NoSecrets));
    let source = server.source();
    let news = listening(&*source);
    source.subscribe("note:a").await.unwrap();
    source.subscribe("note:a").await.unwrap();
    Call::new(&server, "update", json!({"uri": "note:a"}))
        .make()
        .await
        .unwrap();
    assert_eq!(*news.lock().unwrap(), [r#"{"uri":"note:a","x":1e2}"#]);
    source.unsubscribe("note:b").await.unwrap();
    source.unsubscribe("note:a").await.unwrap();
    assert_eq!(
        fixture.notes("requests"),
        [
            r#"resources/subscribe {"uri":"note:a"}"#,
            r#"resources/unsubscribe {"uri":"note:a"}"#
        ]
    );
    server.shutdown().await;
    assert_eq!(
        source.subscribe("note:a").await.unwrap_err().kind(),
        ErrorKind::Unavailable
    );
    source.unsubscribe("note:a").await.unwrap();
    assert_eq!(fixture.notes("starts").len(), 1, "it is not started for that");
}

#[tokio::test]
async fn a_server_that_ended_is_started_again_for_the_news_that_are_wanted() {
    let fixture = Fixture::new(&[]);
    let server = McpServer::new(asker(&fixture, ""), Arc::new(NoSecrets));
    let source = server.source();
    let news = listening(&*source);
    for uri in ["note:a", "note:b"] {
        source.subscribe(uri).await.unwrap();
    }
    source.unsubscribe("note:b").await.unwrap();
    Call::new(&server, "exit", json!({})).make().await.unwrap_err();
    until(|| fixture.notes("requests").len() == 4).await;
    assert_eq!(
        fixture.notes("requests")[3],
        r#"resources/subscribe {"uri":"note:a"}"#
    );
    assert_eq!(fixture.notes("starts").len(), 2);
    Call::new(&server, "update", json!({"uri": "note:a"}))
        .make()
        .await
        .unwrap();
    assert_eq!(news.lock().unwrap().len(), 1);
    let process = fixture.notes("starts").remove(1);
    // What keeps the news coming does not keep the server.
    drop((source, server));
    crate::lifecycle::ended(&process).await;
}

#[tokio::test]
async fn a_server_without_news_says_so() {
    let fixture = Fixture::new(&[]);
    let server = fixture.server("");
    let error = server.source().subscribe("note:a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UpstreamError);
    assert_eq!(
        error.message(),
        "the server `box` has no news of resources to give"
    );
    server.shutdown().await;
}

#[tokio::test]
async fn what_the_server_says_of_a_subscription_is_told() {
    let fixture = Fixture::new(&[]);
    let server = McpServer::new(asker(&fixture, "no-news"), Arc::new(NoSecrets));
    let error = server.source().subscribe("note:a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UpstreamError);
    let detail = error.detail().unwrap();
    assert_eq!(detail.as_str(), r#"{"code":-32002,"message":"no such resource"}"#);
    server.shutdown().await;
}
