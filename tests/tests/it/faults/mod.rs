//! Faults of what is between the gateway and what it calls, on real sockets and pipes: each test is a promise.

mod crashes;
mod cuts_http;
mod cuts_mcp;
mod cuts_stdio;
mod hung;
mod sizes;
mod slow;
mod storms;

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Answer, members};

/// How long a call may take that is expected to end at its limit.
const SHORT: Duration = Duration::from_secs(3);
/// What a slow machine may add to a limit.
const GRACE: Duration = Duration::from_secs(20);

/// A tool that posts its arguments.
fn http_tool(url: &str) -> Value {
    json!({
        "description": "Does what its `id` stands for.",
        "executor": {"kind": "http", "method": "POST", "url": url, "allow_private": true},
    })
}

/// The same with these settings.
fn with(mut tool: Value, settings: &Value) -> Value {
    let tool_settings = tool.as_object_mut().unwrap();
    tool_settings.extend(settings.as_object().unwrap().clone());
    tool
}

/// A tool that may run twice, and is tried again so often after next to no pause.
fn repeatable(tool: Value, max_attempts: u32) -> Value {
    let retry = json!({"max_attempts": max_attempts, "initial_delay": "1ms"});
    with(tool, &json!({"idempotent": true, "retry": retry}))
}

fn arguments(id: &str) -> String {
    json!({"id": id}).to_string()
}

/// How a call ended: `fine`, or the kind of its error. What is fine is the answer to this very call.
fn outcome(answer: &Answer, id: &str) -> String {
    if let Some(kind) = answer.error_kind() {
        return kind;
    }
    let result = answer.clone().result();
    let content = &members(&result)["content"];
    assert!(
        content.contains(id),
        "the answer of another call than `{id}`: {result}"
    );
    "fine".to_owned()
}
