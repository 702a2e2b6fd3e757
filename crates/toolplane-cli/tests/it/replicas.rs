//! Several gateways on one PostgreSQL.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    binary::{BINARY, Place, end_of, eventually, signal},
    serve::Served,
    versions::{ANY, Era, ask, database, done, greet, publish},
};

/// Two gateways on one PostgreSQL share tools, tokens, keys and approvals, and a restart loses none of them.
#[test]
fn gateways_on_one_database_share_what_operators_do() {
    let Some(database) = database() else { return };
    let configuration = format!(
        "store: {{postgres: '{}'}}
gateway: {{auth: tokens}}
policy:
  principals: {{ada: {{}}}}
tools:
  count: {{description: Counts, executor: {{kind: mock, result: counted}}}}
  pay: {{description: Pays, approval: required, executor: {{kind: mock, result: paid}}}}
",
        database.url()
    );
    let place = Place::with(&configuration);
    let (first, mut second) = (Served::start(&place), Served::start(&place));
    let token = place.run(&["tokens", "create", "ada"]);
    let authorization = format!("Authorization: Bearer {}\r\n", token.stdout.trim());
    let post = |served: &Served, name: &str, meta: Value| {
        let params = json!({"name": name, "arguments": {}, "_meta": meta});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let answer = served.post_with(&authorization, &message);
        let body = answer.split_once("\r\n\r\n").expect("a body").1.to_owned();
        serde_json::from_str::<Value>(&body).unwrap_or_else(|error| panic!("{error}: {answer}"))["result"]
            .clone()
    };
    // A token of either is good for both, and so is a key.
    let key = json!({"dev.toolplane/idempotency-key": "k1"});
    let original = post(&first, "count", key.clone());
    assert_eq!(
        original["_meta"]["dev.toolplane/replayed"],
        Value::Null,
        "{original}"
    );
    let replayed = post(&second, "count", key.clone());
    assert_ne!(
        replayed["_meta"]["dev.toolplane/replayed"],
        Value::Null,
        "{replayed}"
    );
    // An approval is requested at one gateway, survives its death, and is decided at the other one.
    let pending = post(&first, "pay", json!({}));
    let handle = pending["_meta"]["dev.toolplane/pending"]["handle"]
        .as_str()
        .unwrap_or_else(|| panic!("{pending}"));
    signal(first.child.id(), Signal::KILL);
    drop(first);
    let listed = place.run(&["approvals", "ls", "-o", "json"]).json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    done(&place.run(&["approvals", "approve", handle, "--as", "boss"]));
    let third = Served::start(&place);
    let paid = post(&third, "pay", json!({"dev.toolplane/approval": handle}));
    assert_eq!(paid["content"][0]["text"], "paid", "{paid}");
    let again = post(&second, "pay", json!({"dev.toolplane/approval": handle}));
    assert_eq!(
        again["isError"], true,
        "an approval is good for one call: {again}"
    );
    assert_ne!(
        post(&third, "count", key)["_meta"]["dev.toolplane/replayed"],
        Value::Null
    );
    // A published tool is there for both, and a revoked token for none.
    publish(&place, &greet(&place, "1.0.0", "hello", ANY));
    for served in [&second, &third] {
        eventually("the published tool", || {
            post(served, "greet", json!({}))["content"][0]["text"] == "hello"
        });
    }
    let id = token.stdout.split('_').nth(1).expect("an id").to_owned();
    done(&place.run(&["tokens", "revoke", &id]));
    for served in [&second, &third] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
        assert!(
            served
                .post_with(&authorization, &message)
                .starts_with("HTTP/1.1 401")
        );
    }
    signal(second.child.id(), Signal::TERM);
    assert_eq!(end_of(&mut second.child), 0);
}

/// A tool that was found by a search and called with success at one gateway ranks higher at the other one, which runs meanwhile.
#[test]
fn gateways_on_one_database_share_the_uses_of_tools() {
    let Some(database) = database() else { return };
    let place = Place::with(&format!(
        "store: {{postgres: '{}'}}
gateway: {{mode: search}}
tools:
  parcel_a: {{description: Sends a parcel., executor: {{kind: mock, result: a}}}}
  parcel_b: {{description: Sends a parcel., executor: {{kind: mock, result: b}}}}
",
        database.url()
    ));
    let (one, other) = (Served::start(&place), Served::start(&place));
    let call = |served: &Served, name: &str, arguments: Value| {
        let result = ask(
            served,
            Era::Modern,
            "tools/call",
            json!({"name": name, "arguments": arguments}),
        );
        let text = result["content"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("{result}")).to_owned()
    };
    let first_found = |served: &Served| {
        let found = call(served, "tool_search", json!({"query": "send a parcel"}));
        found.split(['(', ' ']).next().unwrap().to_owned()
    };
    assert_eq!([first_found(&one), first_found(&other)], ["parcel_a", "parcel_a"]);
    for _ in 0..3 {
        assert_eq!(
            call(&one, "tool_call", json!({"name": "parcel_b", "arguments": {}})),
            "b"
        );
    }
    assert_eq!(first_found(&one), "parcel_b");
    eventually("the use at the first gateway", || {
        first_found(&other) == "parcel_b"
    });
}

/// The list that one gateway got from a server is offered by the other one, where the server does not start.
#[test]
fn gateways_on_one_database_share_kept_lists() {
    let Some(database) = database() else { return };
    let place = Place::with(&format!(
        "store: {{postgres: '{}'}}
servers:
  inner: {{command: sh, args: ['-c', 'mkdir started && exec {BINARY} -c inner.yaml serve --stdio']}}
",
        database.url()
    ));
    place.write(
        "inner.yaml",
        "tools: {greet: {description: Greets, executor: {kind: mock, result: hello}}}",
    );
    let listed = |served: &Served| {
        let listed = ask(served, Era::Modern, "tools/list", json!({}));
        let tools = listed["tools"].as_array().cloned().unwrap_or_default();
        let names = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let one = Served::start(&place);
    eventually("the list of the server", || listed(&one) == ["inner__greet"]);
    eventually("the kept list", || {
        let servers = place.run(&["servers", "ls", "--no-start", "-o", "json"]).json();
        servers[0]["lists"] == "kept"
    });
    drop(one);
    assert!(fs::exists(place.path().join("started")).unwrap());
    // `mkdir` fails from now on: only the database knows the list.
    let other = Served::start(&place);
    assert_eq!(listed(&other), ["inner__greet"]);
}
