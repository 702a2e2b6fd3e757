//! Subscriptions to resources.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tool_core::{ClientKey, ErrorKind, Pattern, Source, Update};
use tool_exec_mcp::McpServer;

use crate::{
    client::{Client, asker, until},
    fixture::{Call, Fixture, NoSecrets},
};

/// Records the updates of a server.
fn listening(source: &dyn Source) -> Arc<Mutex<Vec<String>>> {
    let news = Arc::new(Mutex::new(Vec::new()));
    let told = news.clone();
    source.on_update(Arc::new(move |update| {
        let Update::Resource(update) = update else {
            panic!("{update:?}")
        };
        told.lock().unwrap().push(update.to_string());
    }));
    news
}

#[tokio::test]
async fn updates_of_a_resource_keep_their_bytes_until_nobody_subscribes() {
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
async fn updates_do_not_carry_our_subscription_id() {
    let fixture = Fixture::new(&[]);
    let server = McpServer::new(asker(&fixture, ""), Arc::new(NoSecrets));
    let source = server.source();
    let news = listening(&*source);
    source.subscribe("note:a").await.unwrap();
    for meta in [
        json!({"io.modelcontextprotocol/subscriptionId": 7}),
        json!({"a": 1, "io.modelcontextprotocol/subscriptionId": 7, "b": 2}),
        json!({}),
    ] {
        let params = json!({"uri": "note:a", "_meta": meta});
        let arguments = json!({"method": "notifications/resources/updated", "params": params});
        Call::new(&server, "tell", arguments).make().await.unwrap();
    }
    let told = news.lock().unwrap().clone();
    let told: Vec<serde_json::Value> = told
        .iter()
        .map(|told| serde_json::from_str(told).unwrap())
        .collect();
    assert_eq!(
        told,
        [
            json!({"uri": "note:a"}),
            json!({"uri": "note:a", "_meta": {"a": 1, "b": 2}}),
            json!({"uri": "note:a", "_meta": {}}),
        ]
    );
    server.shutdown().await;
}

/// Checks that the next caller subscribes again and gets the answer: it is unknown whether the server took the first
/// request.
#[tokio::test]
async fn a_subscription_whose_caller_leaves_is_not_recorded() {
    let fixture = Fixture::new(&[]);
    let server = McpServer::new(asker(&fixture, ""), Arc::new(NoSecrets));
    let source = server.source();
    source.subscribe("note:b").await.unwrap();
    tokio::select! {
        biased;
        _ = source.subscribe("note:a") => panic!("it takes a moment"),
        () = std::future::ready(()) => {}
    }
    // The second waits for the result of the first, and both share one subscription.
    let (first, second) = tokio::join!(source.subscribe("note:a"), source.subscribe("note:a"));
    first.and(second).unwrap();
    let asked = r#"resources/subscribe {"uri":"note:a"}"#;
    let n_asked = || {
        fixture
            .notes("requests")
            .iter()
            .filter(|note| *note == asked)
            .count()
    };
    until(|| n_asked() == 2).await;
    // A caller that subscribes while it is being ended asks once that is over.
    let (left, came) = tokio::join!(source.unsubscribe("note:a"), source.subscribe("note:a"));
    left.and(came).unwrap();
    assert_eq!(n_asked(), 3);
    assert_eq!(fixture.notes("requests").last().unwrap(), asked);
    server.shutdown().await;
}

#[tokio::test]
async fn a_server_that_ended_is_restarted_for_its_subscriptions() {
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
    // It may have changed unnoticed.
    until(|| news.lock().unwrap().len() == 1).await;
    assert_eq!(news.lock().unwrap()[0], r#"{"uri":"note:a"}"#);
    Call::new(&server, "update", json!({"uri": "note:a"}))
        .make()
        .await
        .unwrap();
    assert_eq!(news.lock().unwrap().len(), 2);
    let process = fixture.notes("starts").remove(1);
    // The resubscribing task does not keep the server alive.
    drop((source, server));
    crate::lifecycle::ended(&process).await;
}

#[tokio::test]
async fn a_server_without_subscriptions_is_an_error() {
    let fixture = Fixture::new(&[]);
    let server = fixture.server("");
    let error = server.source().subscribe("note:a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UpstreamError);
    assert_eq!(
        error.message(),
        "the server `box` does not offer subscriptions to resources"
    );
    server.shutdown().await;
}

#[tokio::test]
async fn a_refused_subscription_is_an_error() {
    let fixture = Fixture::new(&[]);
    let server = McpServer::new(asker(&fixture, "no-news"), Arc::new(NoSecrets));
    let error = server.source().subscribe("note:a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let detail = error.detail().unwrap();
    assert_eq!(detail.as_str(), r#"{"code":-32002,"message":"no such resource"}"#);
    server.shutdown().await;
}

#[tokio::test]
async fn a_visited_page_is_reported_once_to_the_client_sent_there() {
    let fixture = Fixture::new(&[]);
    let server = McpServer::new(asker(&fixture, ""), Arc::new(NoSecrets));
    let told = Arc::new(Mutex::new(Vec::new()));
    let news = told.clone();
    server.source().on_update(Arc::new(move |update| {
        let Update::PageVisited { client, params } = update else {
            panic!("{update:?}")
        };
        news.lock().unwrap().push((client.clone(), params.to_string()));
    }));
    let anna = Client::session("anna", r#"{"elicitation":{"url":{}}}"#).answers(9);
    let berta = Client::session("berta", r#"{"elicitation":{"url":{}}}"#).answers(9);
    let page = |id: &str| json!({"mode": "url", "url": "https://a.test", "elicitationId": id});
    let asks = |id: &str| json!({"method": "elicitation/create", "params": page(id)});
    anna.call(&server, "ask", asks("e1")).make().await.unwrap();
    let error =
        json!({"code": -32042, "message": "visit", "data": {"elicitations": [page("e2"), page("e3")]}});
    let refused = berta
        .call(&server, "refuse", json!({"error": error}))
        .make()
        .await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::UpstreamError);
    let tell = |client: &Arc<Client>, id: &str| {
        let params = json!({"elicitationId": id});
        let arguments = json!({"method": "notifications/elicitation/complete", "params": params});
        client.call(&server, "tell", arguments)
    };
    // Each on the connection on which it was asked.
    for (client, id) in [
        (&anna, "e1"),
        (&anna, "e1"),
        (&anna, "e2"),
        (&berta, "e3"),
        (&berta, "e4"),
    ] {
        tell(client, id).make().await.unwrap();
    }
    let of = |name: &str, id: &str| {
        (
            ClientKey::Session(name.into()),
            format!(r#"{{"elicitationId":"{id}"}}"#),
        )
    };
    assert_eq!(*told.lock().unwrap(), [of("anna", "e1"), of("berta", "e3")]);
    server.shutdown().await;
}

#[tokio::test]
async fn excluded_resources_cannot_be_subscribed() {
    let fixture = Fixture::new(&[]);
    let mut settings = asker(&fixture, "");
    settings.exclude = vec![Pattern::new("file:///secret/*")];
    let server = McpServer::new(settings, Arc::new(NoSecrets));
    let source = server.source();
    for uri in [
        "file:///secret/b",
        "file:/secret/b",
        "file://localhost/secret/b",
        "file:///open/../secret/b",
    ] {
        let error = source.subscribe(uri).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{uri}");
    }
    source.subscribe("file:///open/b").await.unwrap();
    assert_eq!(
        fixture.notes("requests"),
        [r#"resources/subscribe {"uri":"file:///open/b"}"#]
    );
    server.shutdown().await;
}
