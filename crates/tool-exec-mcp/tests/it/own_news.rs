//! News of resources for single clients, from the connections that serve them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use tool_core::{
    Caller, ClientCapabilities, ClientGroup, ClientIdentity, ClientKey, ErrorKind, Source, Update,
};
use tool_exec_mcp::{Isolation, McpServer};

use crate::{
    client::{Client, asker, until},
    fixture::{Call, Fixture, NoSecrets},
};

const ASKABLE: &str = r#"{"elicitation":{}}"#;
const SUBSCRIBED: &str = r#"resources/subscribe {"uri":"note:a"}"#;
const UNSUBSCRIBED: &str = r#"resources/unsubscribe {"uri":"note:a"}"#;

fn server(fixture: &Fixture, isolation: Isolation) -> Arc<McpServer> {
    let mut settings = asker(fixture, "");
    settings.isolation = isolation;
    McpServer::new(settings, Arc::new(NoSecrets))
}

fn session(name: &str) -> ClientIdentity {
    let key = ClientKey::Session(name.into());
    let declared = raw_json::RawJson::parse(ASKABLE.to_owned()).unwrap();
    let capabilities = ClientCapabilities::from_json(&declared);
    ClientIdentity::new(None, Some(&key), capabilities, &Caller::local())
}

/// The news as they come: the client that they are for, if it is one alone, and what they say.
fn news(source: &Arc<dyn Source>) -> Arc<Mutex<Vec<String>>> {
    let news = Arc::<Mutex<Vec<_>>>::default();
    let told = news.clone();
    source.on_update(Arc::new(move |update| {
        let line = match update {
            Update::Resource(params) => format!("all: {params}"),
            Update::ClientResource { clients, params } => {
                let ClientKey::Session(name) = &clients.identity.key else {
                    panic!("{clients:?}")
                };
                format!("{name}: {params}")
            }
            _ => return,
        };
        told.lock().unwrap().push(line);
    }));
    news
}

fn taken(news: &Mutex<Vec<String>>) -> Vec<String> {
    std::mem::take(&mut *news.lock().unwrap())
}

fn n_noted(fixture: &Fixture, note: &str) -> usize {
    let notes = fixture.notes("requests");
    notes.iter().filter(|noted| *noted == note).count()
}

async fn calls(client: &Arc<Client>, server: &Arc<McpServer>) {
    client.call(server, "pid", json!({})).make().await.unwrap();
}

/// Has the process that serves the client tell of the resource.
async fn updates(client: &Arc<Client>, server: &Arc<McpServer>) {
    let mut call = client.call(server, "update", json!({"uri": "note:a"}));
    call.make().await.unwrap();
}

const ANNAS: &str = r#"anna: {"uri":"note:a","x":1e2}"#;

#[tokio::test]
async fn news_come_from_the_connection_of_the_client_alone() {
    for isolation in [Isolation::Auto, Isolation::Session] {
        let fixture = Fixture::new(&[]);
        let server = server(&fixture, isolation);
        let source = server.source();
        let news = news(&source);
        let [anna, otto] = ["anna", "otto"].map(|name| Client::session(name, ASKABLE));
        calls(&anna, &server).await;
        calls(&otto, &server).await;
        assert!(source.subscribe_for("note:a", &session("anna")).await.unwrap());
        updates(&anna, &server).await;
        assert_eq!(taken(&news), [ANNAS], "{isolation:?}");
        assert_eq!(
            n_noted(&fixture, SUBSCRIBED),
            1,
            "the other processes are not asked"
        );
        // The news of another client's process are that client's.
        updates(&otto, &server).await;
        assert_eq!(taken(&news), [r#"otto: {"uri":"note:a","x":1e2}"#]);
        server.shutdown().await;
    }
}

#[tokio::test]
async fn a_client_without_a_connection_shares_the_news_until_it_has_one() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, Isolation::Auto);
    let source = server.source();
    let news = news(&source);
    assert!(!source.subscribe_for("note:a", &session("anna")).await.unwrap());
    source.subscribe("note:a").await.unwrap();
    Call::new(&server, "update", json!({"uri": "note:a"}))
        .make()
        .await
        .unwrap();
    assert_eq!(taken(&news), [r#"all: {"uri":"note:a","x":1e2}"#]);
    let anna = Client::session("anna", ASKABLE);
    calls(&anna, &server).await;
    // It is another process, whose resource may be another.
    until(|| !news.lock().unwrap().is_empty()).await;
    assert_eq!(taken(&news), [r#"anna: {"uri":"note:a"}"#]);
    assert_eq!(n_noted(&fixture, SUBSCRIBED), 2);
    server.shutdown().await;
}

#[tokio::test]
async fn news_go_on_when_the_connection_of_the_client_ends() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, Isolation::Auto);
    let source = server.source();
    let news = news(&source);
    let anna = Client::session("anna", ASKABLE);
    calls(&anna, &server).await;
    assert!(source.subscribe_for("note:a", &session("anna")).await.unwrap());
    anna.call(&server, "exit", json!({})).make().await.unwrap_err();
    // From the shared connection: the client is told that the resource may be another.
    until(|| !news.lock().unwrap().is_empty()).await;
    assert_eq!(taken(&news), [r#"anna: {"uri":"note:a"}"#]);
    assert_eq!(n_noted(&fixture, SUBSCRIBED), 2);
    Call::new(&server, "update", json!({"uri": "note:a"}))
        .make()
        .await
        .unwrap();
    assert_eq!(taken(&news), [r#"all: {"uri":"note:a","x":1e2}"#]);
    // And from its own again as soon as there is one.
    while anna.call(&server, "pid", json!({})).make().await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    until(|| n_noted(&fixture, SUBSCRIBED) == 3).await;
    until(|| !news.lock().unwrap().is_empty()).await;
    taken(&news);
    updates(&anna, &server).await;
    assert_eq!(taken(&news), [ANNAS]);
    server.shutdown().await;
}

#[tokio::test]
async fn a_subscription_ends_when_its_client_does_not_watch() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, Isolation::Auto);
    let source = server.source();
    let anna = Client::session("anna", ASKABLE);
    calls(&anna, &server).await;
    assert!(source.subscribe_for("note:a", &session("anna")).await.unwrap());
    let is_annas = |uri: &str, clients: &ClientGroup| uri == "note:a" && clients.includes(&session("anna"));
    source.end_unwatched(Duration::ZERO, &is_annas);
    source.end_unwatched(Duration::from_secs(3600), &|_, _| false);
    source.end_unwatched(Duration::ZERO, &|_, _| false);
    until(|| n_noted(&fixture, UNSUBSCRIBED) == 1).await;
    source.end_unwatched(Duration::ZERO, &|_, _| false);
    server.shutdown().await;
    assert_eq!(n_noted(&fixture, UNSUBSCRIBED), 1, "it was ended already");
}

#[tokio::test]
async fn what_the_process_of_a_client_refuses_is_an_error() {
    let fixture = Fixture::new(&[]);
    let mut settings = asker(&fixture, "no-news");
    settings.isolation = Isolation::Session;
    let server = McpServer::new(settings, Arc::new(NoSecrets));
    let source = server.source();
    let anna = Client::session("anna", ASKABLE);
    calls(&anna, &server).await;
    let error = source
        .subscribe_for("note:a", &session("anna"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    server.shutdown().await;
}
