//! The server that has something of everything MCP offers.

use serde_json::json;

use super::{Call, call, compare, relayed};
use crate::support::{Configuration, Era, HttpClient, installed, listening_peer};

#[test]
fn server_everything() {
    let Some(peer) = installed(|peers| peers.everything("stdio")) else {
        return;
    };
    let mut calls = calls_of_everything();
    calls.extend([
        // That the two are equal shows as well that no other variable reaches a server.
        call("get-env", "{}"),
        call("toggle-simulated-logging", "{}"),
        call("toggle-simulated-logging", "{}"),
        call("toggle-subscriber-updates", "{}"),
        call("toggle-subscriber-updates", "{}"),
    ]);
    relayed(&peer, &calls, || {});
}

#[test]
fn server_everything_over_http() {
    let Some(command) = installed(|peers| peers.everything("streamableHttp")) else {
        return;
    };
    let (_server, address) = listening_peer(&command);
    let url = json!({"url": format!("http://{address}/mcp")});
    let mut calls = calls_of_everything();
    calls.extend([
        call("get-env", "{}"),
        // Tells the session, of which each client has its own.
        call("toggle-simulated-logging", "{}").at_some_time(),
        call("toggle-simulated-logging", "{}").at_some_time(),
        call("toggle-subscriber-updates", "{}").at_some_time(),
        call("toggle-subscriber-updates", "{}").at_some_time(),
    ]);
    let mut direct = HttpClient::open_at(address, Era::Legacy);
    compare(
        &Configuration::default().server("peer", url),
        &mut direct,
        &calls,
        || {},
    );
}

/// What can be called of it with the same result wherever it is.
fn calls_of_everything() -> Vec<Call> {
    let data = "data:text/plain,hello";
    vec![
        call(
            "echo",
            json!({"message": "Grüße \u{1f44b} \"quoted\" \\ and \u{7f}"}),
        ),
        // As nobody would write it, with a number that no double holds.
        call(
            "echo",
            r#"{ "message" : "\u0041\u00e9",  "unknown": 12345678901234567890123 }"#,
        ),
        call(
            "get-annotated-message",
            json!({"messageType": "error", "includeImage": true}),
        ),
        call("get-annotated-message", json!({"messageType": "debug"})),
        call("get-resource-links", json!({"count": 10})),
        call(
            "get-resource-reference",
            json!({"resourceType": "Text", "resourceId": 3}),
        )
        .at_some_time(),
        call("get-structured-content", json!({"location": "Chicago"})),
        call("get-sum", r#"{"a": 1e2, "b": -0.5}"#),
        call("get-tiny-image", "{}"),
        call(
            "gzip-file-as-resource",
            json!({"name": "a.gz", "data": data, "outputType": "resource"}),
        ),
        call("gzip-file-as-resource", json!({"name": "b.gz", "data": data})),
        call(
            "trigger-long-running-operation",
            json!({"duration": 0.2, "steps": 2}),
        ),
        call("simulate-research-query", json!({"topic": "x"})).in_a_task(),
    ]
}
