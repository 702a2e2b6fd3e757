//! Changes of the configuration while it is served.

use std::io::BufRead;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    binary::{BINARY, Place, children, eventually, is_alive, signal},
    serve::Served,
};

fn tools(served: &Served) -> Vec<String> {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }}});
    let answer = served.post_modern(&message);
    let body = answer.split_once("\r\n\r\n").expect("a head and a body").1;
    let body: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"));
    let tools = body["result"]["tools"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"));
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

fn tool(name: &str) -> String {
    format!("tools: {{{name}: {{description: d, executor: {{kind: mock, result: 1}}}}}}\n")
}

#[test]
fn changed_files_count_and_bad_ones_do_not() {
    let place = Place::with(&tool("first"));
    let mut served = Served::start(&place);
    assert_eq!(tools(&served), ["first"]);
    place.write("toolplane.yaml", tool("second"));
    eventually("the second configuration", || tools(&served) == ["second"]);
    let mut line = String::new();
    served.stderr.read_line(&mut line).unwrap();
    assert_eq!(line, "the configuration was reloaded\n");
    place.write("toolplane.yaml", "tools: {bad: {descripton: d}}\n");
    let mut said = String::new();
    while !said.contains("the previous configuration stays in effect") {
        assert!(served.stderr.read_line(&mut said).unwrap() > 0, "{said}");
    }
    assert!(
        said.contains("toolplane.yaml:1:15") && said.contains("did you mean `description`?"),
        "{said}"
    );
    assert_eq!(tools(&served), ["second"]);
    place.write("toolplane.yaml", tool("third"));
    eventually("the third configuration", || tools(&served) == ["third"]);
}

/// Returns the messages up to a reload.
fn said(served: &mut Served) -> String {
    let mut said = String::new();
    while !said.ends_with("the configuration was reloaded\n") {
        assert!(served.stderr.read_line(&mut said).unwrap() > 0, "{said}");
    }
    said
}

#[test]
fn what_waits_for_another_start_is_named() {
    let with = |sections: &str| format!("{}{sections}", tool("one"));
    let place = Place::with(&with(""));
    // The test sets the address, so `gateway.listen` has no effect.
    let mut served = Served::start_with(&place, &["--no-reload"]);
    let mut reload = |sections: &str| {
        place.write("toolplane.yaml", with(sections));
        signal(served.child.id(), Signal::HUP);
        said(&mut served)
    };
    let quiet = "the configuration was reloaded\n";
    assert_eq!(reload("health: {window: 1m}\nalerts: {min_calls: 1}\n"), quiet);
    assert_eq!(reload("gateway: {listen: '127.0.0.1:1'}\n"), quiet);
    let sections = "gateway: {metrics: true, sse_path: /sse}\ndefaults: {cache_bytes: 1MiB}\n";
    assert_eq!(
        reload(sections),
        format!(
            "warning: changes of `gateway.sse_path`, `gateway.metrics` and `defaults.cache_bytes` take effect after a \
             restart of the gateway\n{quiet}"
        )
    );
    assert_eq!(reload(sections), quiet, "that is known");
    assert_eq!(reload(""), quiet, "all is as it was at the start");
}

#[test]
fn what_never_has_an_effect_is_warned_of_when_it_is_loaded_again() {
    let place = Place::with(&tool("one"));
    let mut served = Served::start_with(&place, &["--no-reload"]);
    let config = "{kind: http, url: 'https://api.example.com/', timeout_ms: 31000}";
    place.write(
        "toolplane.yaml",
        format!("tools: {{one: {{description: d, executor: {config}}}}}\n"),
    );
    signal(served.child.id(), Signal::HUP);
    let said = said(&mut served);
    assert!(
        said.contains("`timeout_ms` is 31000, but an attempt of `one` is over after 30 s"),
        "{said}"
    );
}

#[test]
fn hosts_and_origins_change_with_the_configuration() {
    let with = |hosts: &str| format!("{}gateway: {{metrics: true, {hosts}}}\n", tool("one"));
    let place = Place::with(&with("allowed_hosts: [before.example.com]"));
    let mut served = Served::start_with(&place, &["--no-reload"]);
    let statuses = |served: &Served| {
        let asked = |path: &str, headers: &str| served.page_with(path, headers).0;
        // The origin is checked before the session, which does not exist.
        [
            asked("/mcp", "Host: before.example.com\r\n"),
            asked("/mcp", "Host: after.example.com\r\n"),
            asked("/mcp", "Host: localhost\r\nOrigin: https://after.example.com\r\n"),
            asked("/metrics", "Host: before.example.com\r\n"),
            asked("/metrics", "Host: after.example.com\r\n"),
        ]
    };
    assert_eq!(statuses(&served), [405, 403, 403, 200, 403]);
    // A refusal names the key of the configuration that admits.
    let refused = |headers: &str| served.page_with("/mcp", headers).1;
    let host = refused("Host: after.example.com\r\n");
    assert!(host.contains("admit it with `gateway.allowed_hosts`"), "{host}");
    let origin = refused("Host: localhost\r\nOrigin: https://after.example.com\r\n");
    assert!(
        origin.contains("admit it with `gateway.allowed_origins`"),
        "{origin}"
    );
    let hosts = "allowed_hosts: [after.example.com], allowed_origins: ['https://after.example.com']";
    place.write("toolplane.yaml", with(hosts));
    signal(served.child.id(), Signal::HUP);
    assert_eq!(said(&mut served), "the configuration was reloaded\n");
    assert_eq!(statuses(&served), [403, 405, 405, 403, 200]);
}

#[test]
fn a_signal_is_enough_and_the_processes_of_servers_come_and_go() {
    let with = |server: &str| {
        format!(
            "{}servers: {{{server}: {{command: {BINARY}, args: [-c, inner.yaml, serve, --stdio]}}}}\n",
            tool("own")
        )
    };
    let place = Place::with(&with("before"));
    place.write("inner.yaml", tool("inner"));
    let served = Served::start_with(&place, &["--no-reload"]);
    assert_eq!(tools(&served), ["before__inner", "own"]);
    let before = children(served.child.id());
    assert_eq!(before.len(), 1);
    place.write("toolplane.yaml", with("after"));
    signal(served.child.id(), Signal::HUP);
    eventually("the new server", || tools(&served) == ["after__inner", "own"]);
    eventually("the end of the old server", || !is_alive(before[0]));
    let now = children(served.child.id());
    assert_eq!(now.len(), 1);
    signal(served.child.id(), Signal::HUP);
    eventually("the reload", || tools(&served) == ["after__inner", "own"]);
    assert_eq!(
        children(served.child.id()),
        now,
        "what did not change is not started again"
    );
}
