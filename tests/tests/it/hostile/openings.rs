//! Servers that do not complete the handshake, or whose list of tools is invalid.

use super::{GRACE, LONG, SHORT, assert_healthy, healthy};
use crate::support::{Carrier, Client as _, Era, Gateway, Stage, Stopwatch};

/// Modes of servers without a usable tool.
const UNUSABLE: [&str; 5] = [
    "never-opens",
    "opens-with-nothing",
    "opens-with-a-list",
    "opens-in-another-age",
    "lists-nothing",
];

/// Modes of servers with an endless list. It is read up to its limits, and the tools read so far are offered.
const ENDLESS: [&str; 2] = ["lists-in-circles", "lists-without-end"];

fn check(carrier: Carrier, era: Era) {
    let stage = Stage::new(carrier, era);
    let usable = healthy().server("junk", stage.server("lists-junk", LONG));
    // A server that does not listen.
    let usable = usable.server("nobody", serde_json::json!({"url": "http://127.0.0.1:1/mcp"}));
    let configuration = UNUSABLE.iter().fold(usable, |configuration, mode| {
        let mut server = stage.server(mode, LONG);
        if *mode == "never-opens" {
            server["start_timeout_ms"] = serde_json::json!(SHORT.as_millis() as u64);
        }
        configuration.server(mode, server)
    });
    let configuration = ENDLESS.iter().fold(configuration, |configuration, mode| {
        configuration.server(mode, stage.server(mode, LONG))
    });
    let mut gateway = Gateway::stdio_in(era, &configuration.waiting_for_lists());
    let watch = Stopwatch::start();
    let tools = gateway.client.tools();
    assert!(
        watch.elapsed() < LONG,
        "{carrier:?} {era:?}: {:?}",
        watch.elapsed()
    );
    let names: Vec<_> = tools.iter().map(|(name, _)| name.as_str()).collect();
    // An entry without a name, with a name that the protocol does not allow, or with a schema that would have to be fetched is no
    // tool.
    let expected = [
        "healthy__act",
        "healthy__echo",
        "junk__act",
        "junk__echo",
        "lists-in-circles__act",
    ];
    assert_eq!(names, expected, "{carrier:?} {era:?}");
    assert!(
        tools[3].1.contains("the first of two"),
        "of two tools with one name the first counts: {tools:?}"
    );
    for mode in UNUSABLE.iter().chain(&["nobody"]) {
        let watch = Stopwatch::start();
        let answer = gateway.client.call(&format!("{mode}__echo"), "{}");
        assert_eq!(
            answer.error_kind().as_deref(),
            Some("unavailable"),
            "{mode}: {answer:?}"
        );
        assert!(watch.elapsed() < SHORT + GRACE, "{mode}: {:?}", watch.elapsed());
    }
    for server in ["healthy", "junk"] {
        gateway.client.call(&format!("{server}__echo"), "{}").result();
    }
    assert_healthy(&mut gateway);
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn of_servers_over_stdio() {
    check(Carrier::Stdio, Era::Legacy);
    check(Carrier::Stdio, Era::Modern);
}

#[test]
fn of_servers_in_bodies() {
    check(Carrier::Json, Era::Legacy);
    check(Carrier::Json, Era::Modern);
}

#[test]
fn of_servers_in_events() {
    check(Carrier::Events, Era::Legacy);
    check(Carrier::Events, Era::Modern);
}
