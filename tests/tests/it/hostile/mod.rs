//! Peers that misbehave: no call outlives its deadline, no other call suffers, nothing stays behind.

mod answers;
mod beside_tools;
mod clients_http;
mod clients_stdio;
mod floods;
mod openings;
mod processes;
mod questions;

use std::time::Duration;

use serde_json::json;

use crate::support::{Client as _, Configuration, Gateway, Process, Stopwatch, healthy_server};

/// How long a call may take that is expected to end at its limit.
const SHORT: Duration = Duration::from_secs(3);
/// How long any other call may take: so long that none ends at its limit because the machine is slow.
const LONG: Duration = Duration::from_secs(90);
/// What a slow machine may add to a limit.
const GRACE: Duration = Duration::from_secs(20);

/// A configuration with a server that does nothing wrong.
fn healthy() -> Configuration {
    Configuration::default().server("healthy", healthy_server())
}

/// Calls the healthy server, whose answer must be there in no time.
fn assert_healthy(gateway: &mut Gateway) {
    let watch = Stopwatch::start();
    let result = gateway.client.call("healthy__echo", r#"{"a":1}"#).result();
    assert!(result.contains(r#"{\"a\":1}"#), "{result}");
    assert!(watch.elapsed() < GRACE);
}

/// Calls the tool that does nothing wrong of a server that misbehaves.
fn assert_lives_on(gateway: &mut Gateway, mode: &str) {
    let answer = gateway.client.call(&format!("{mode}__echo"), r#"{"again":true}"#);
    let result = answer.result();
    assert!(result.contains(r#"{\"again\":true}"#), "{mode}: {result}");
}

/// At no time the gateway has had more memory than it needs itself and a few messages of the largest size take.
fn assert_memory(gateway: &Process) {
    let peak = gateway.peak_memory() / 1024 / 1024;
    assert!(peak < 200, "{peak} MiB");
}

/// Arguments that are more than a pipe or a socket takes before anybody reads.
fn large() -> String {
    json!({"text": "x".repeat(8_000_000)}).to_string()
}
