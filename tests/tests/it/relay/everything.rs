//! `server-everything`, which has a feature of every kind.

use serde_json::json;

use super::{Call, Subject, call, compare, complete, prompt, read, relayed, task};
use crate::support::{
    Client, Configuration, Era, HttpClient, StdioClient, everything_at_no_time, listening_peer,
};

#[test]
fn server_everything() {
    let Some((peer, _folder)) = everything_at_no_time("stdio") else {
        return;
    };
    let mut calls = calls_of_everything();
    calls.extend([
        call("toggle-simulated-logging", "{}"),
        call("toggle-simulated-logging", "{}"),
        call("toggle-subscriber-updates", "{}"),
        call("toggle-subscriber-updates", "{}"),
    ]);
    relayed(&peer, &calls, || {});
}

#[test]
fn server_everything_over_http() {
    let Some((command, _folder)) = everything_at_no_time("streamableHttp") else {
        return;
    };
    let (_server, address) = listening_peer(&command);
    let mut direct = HttpClient::open_at(address, Era::Legacy);
    over_http(&format!("http://{address}/mcp"), &mut direct);
}

/// The server speaks the transport of 2024-11-05 only, which the gateway detects.
#[test]
fn server_everything_over_http_and_sse() {
    let listening = everything_at_no_time("sse");
    let Some(((command, _folder), (peer, _time))) = listening.zip(everything_at_no_time("stdio")) else {
        return;
    };
    let (_server, address) = listening_peer(&command);
    // The direct client uses stdio, with the same environment.
    let mut direct = peer.to_command();
    let mut direct = StdioClient::start(direct.env("PORT", address.port().to_string()), Era::Legacy);
    over_http(&format!("http://{address}/sse"), &mut direct);
}

fn over_http(url: &str, direct: &mut impl Client) {
    let mut calls = calls_of_everything();
    calls.extend([
        // Names the session, which each client has its own of.
        call("toggle-simulated-logging", "{}").at_some_time(),
        call("toggle-simulated-logging", "{}").at_some_time(),
        call("toggle-subscriber-updates", "{}").at_some_time(),
        call("toggle-subscriber-updates", "{}").at_some_time(),
    ]);
    let configuration = Configuration::default().server("peer", json!({"url": url}));
    compare(&configuration, direct, &calls, || {});
}

/// Returns the calls with reproducible results.
fn calls_of_everything() -> Vec<Call> {
    let mut calls = tools();
    calls.extend(prompts());
    calls.extend(resources());
    calls.extend(completions());
    calls
}

fn tools() -> Vec<Call> {
    let data = "data:text/plain,hello";
    vec![
        call(
            "echo",
            json!({"message": "Grüße \u{1f44b} \"quoted\" \\ and \u{7f}"}),
        ),
        // With odd spelling, and a number that no double represents.
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
        ),
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
        // Equal results also show that no other variable reaches a server.
        call("get-env", "{}"),
        task("simulate-research-query", json!({"topic": "wrens \u{1f426}"})),
    ]
}

fn prompts() -> [Call; 10] {
    let resource = |kind: &str, id: &str| json!({"resourceType": kind, "resourceId": id});
    [
        prompt("simple-prompt", "{}"),
        prompt("args-prompt", r#"{ "city" : "\u00c5rhus" }"#),
        prompt("args-prompt", json!({"city": "Oslo", "state": "\"Viken\""})),
        prompt(
            "completable-prompt",
            json!({"department": "Sales", "name": "Eve"}),
        ),
        prompt("resource-prompt", resource("Text", "12345678901234567890123")),
        prompt("resource-prompt", resource("Blob", "7")),
        prompt("resource-prompt", resource("Film", "7")),
        prompt("resource-prompt", resource("Text", "-1")),
        // An argument is missing, or is no text.
        prompt("args-prompt", json!({"state": "Viken"})),
        prompt("args-prompt", json!({"city": 1})),
    ]
}

/// Returns reads of templates; listed resources are read anyway.
fn resources() -> [Call; 3] {
    [
        read("demo://resource/dynamic/text/7"),
        read("demo://resource/dynamic/blob/12345678901234567890123"),
        // Matches the template, but does not exist.
        read("demo://resource/dynamic/text/none"),
    ]
}

fn completions() -> [Call; 6] {
    let argument = |name: &str, value: &str| json!({"argument": {"name": name, "value": value}});
    let within = |value: &str, department: &str| {
        let mut params = argument("name", value);
        params["context"] = json!({"arguments": {"department": department}});
        params
    };
    let name = || Subject::ArgumentOfPrompt("completable-prompt");
    [
        complete(name(), &argument("department", "S")),
        complete(name(), &within("", "Support")),
        complete(name(), &within("J", "Engineering")),
        complete(
            Subject::ArgumentOfPrompt("resource-prompt"),
            &argument("resourceType", ""),
        ),
        complete(
            Subject::ArgumentOfTemplate("demo://resource/dynamic/text/{resourceId}"),
            &argument("resourceId", "42"),
        ),
        complete(
            Subject::ArgumentOfTemplate("demo://resource/dynamic/blob/{resourceId}"),
            &argument("nothing", "x"),
        ),
    ]
}
