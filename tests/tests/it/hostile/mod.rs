//! Peers that misbehave: no call outlives its deadline, no other call is affected, nothing is left behind.

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

/// Time limit of a call that is expected to end at its limit.
const SHORT: Duration = Duration::from_secs(3);
/// Time limit of any other call: long enough for slow machines.
const LONG: Duration = Duration::from_secs(90);
/// Tolerance for slow machines.
const GRACE: Duration = Duration::from_secs(20);

/// Returns a configuration with a healthy server.
fn healthy() -> Configuration {
    Configuration::default().server("healthy", healthy_server())
}

/// Calls the healthy server, which must answer quickly.
fn assert_healthy(gateway: &mut Gateway) {
    let watch = Stopwatch::start();
    let result = gateway.client.call("healthy__echo", r#"{"a":1}"#).result();
    assert!(result.contains(r#"{\"a\":1}"#), "{result}");
    assert!(watch.elapsed() < GRACE);
}

/// Calls the healthy tool of a server that misbehaves.
fn assert_lives_on(gateway: &mut Gateway, mode: &str) {
    let answer = gateway.client.call(&format!("{mode}__echo"), r#"{"again":true}"#);
    let result = answer.result();
    assert!(result.contains(r#"{\"again\":true}"#), "{mode}: {result}");
}

/// Checks the peak memory of the gateway: its base and a few messages of the maximum size.
fn assert_memory(gateway: &Process) {
    let peak = gateway.peak_memory() / 1024 / 1024;
    assert!(peak < 200, "{peak} MiB");
}

/// Returns arguments that are larger than the buffer of a pipe or a socket.
fn large() -> String {
    json!({"text": "x".repeat(8_000_000)}).to_string()
}
