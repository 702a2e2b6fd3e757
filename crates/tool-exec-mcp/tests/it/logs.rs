//! Log messages of servers, and the clients that get them.

use std::sync::Arc;

use serde_json::json;
use tool_core::Caller;
use tool_exec_mcp::{Isolation, McpServer};

use crate::{
    client::{Client, asker, until},
    fixture::{Fixture, NoSecrets},
};

fn server(fixture: &Fixture) -> Arc<McpServer> {
    McpServer::new(asker(fixture, ""), Arc::new(NoSecrets))
}

/// Makes a call in which the server logs a message, and returns what its client got.
async fn logged(client: &Arc<Client>, server: &Arc<McpServer>, level: &str) -> Vec<String> {
    let before = client.logs().len();
    let mut call = client.call(server, "log", json!({"level": level}));
    call.make().await.unwrap();
    client.logs().split_off(before)
}

fn levels_set(fixture: &Fixture) -> Vec<String> {
    fixture.notes("requests")
}

#[tokio::test]
async fn a_client_gets_what_it_wants_with_its_own_bytes() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture);
    let client = Client::listening("anna", "warning");
    for (level, relayed) in [
        ("error", true),
        ("warning", true),
        ("info", false),
        ("strange", true),
    ] {
        let message = format!(r#"{{"level":"{level}","data":1e2}}"#);
        let expected = if relayed { vec![message] } else { Vec::new() };
        assert_eq!(logged(&client, &server, level).await, expected);
    }
    let deaf = Client::session("otto", "{}");
    assert!(logged(&deaf, &server, "error").await.is_empty());
    server.shutdown().await;
}

#[tokio::test]
async fn the_server_is_told_the_lowest_level_that_anyone_wants() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture);
    for level in ["warning", "error", "debug", "warning", "no such level"] {
        logged(&Client::listening("anna", level), &server, "emergency").await;
    }
    assert_eq!(
        levels_set(&fixture),
        [
            r#"logging/setLevel {"level":"warning"}"#,
            r#"logging/setLevel {"level":"debug"}"#
        ]
    );
    // A restarted server has forgotten the level.
    let client = Client::listening("anna", "error");
    client.call(&server, "exit", json!({})).make().await.unwrap_err();
    let again = async {
        while client.call(&server, "log", json!({})).make().await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::fixture::LIMIT, again).await.unwrap();
    assert_eq!(
        levels_set(&fixture)[2..],
        [r#"logging/setLevel {"level":"error"}"#]
    );
    server.shutdown().await;
}

#[tokio::test]
async fn a_message_that_may_be_another_clients_is_dropped() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture);
    let (anna, otto) = (
        Client::listening("anna", "debug"),
        Client::listening("otto", "debug"),
    );
    let holding = tokio::spawn({
        let (otto, server) = (otto.clone(), server.clone());
        async move { otto.call(&server, "hold", json!({})).make().await }
    });
    until(|| !fixture.notes("held").is_empty()).await;
    assert!(logged(&anna, &server, "error").await.is_empty());
    assert!(otto.logs().is_empty());
    // Calls of one client alone.
    assert_eq!(logged(&otto, &server, "error").await.len(), 1);
    holding.abort();
    server.shutdown().await;
}

#[tokio::test]
async fn messages_on_a_connection_of_several_principals_are_dropped() {
    let fixture = Fixture::new(&[]);
    for (isolation, expected) in [(Isolation::Auto, [1, 1, 0, 0]), (Isolation::Principal, [1; 4])] {
        let mut settings = asker(&fixture, "");
        settings.isolation = isolation;
        let server = McpServer::new(settings, Arc::new(NoSecrets));
        let mut told = Vec::new();
        // The second has another session, and all earlier calls have ended.
        for (principal, session) in [("alice", "a"), ("alice", "b"), ("bob", "c"), ("alice", "a")] {
            let client = Client::listening(session, "debug");
            let mut call = client.call(&server, "log", json!({"level": "error"}));
            call.cx.origin.caller = Arc::new(Caller::new(principal));
            call.make().await.unwrap();
            told.push(client.logs().len());
        }
        assert_eq!(told, expected, "{isolation:?}");
        server.shutdown().await;
    }
}
