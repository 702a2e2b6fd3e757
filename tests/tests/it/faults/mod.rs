//! Faults between the gateway and its upstreams, on real sockets and pipes. Each test checks a promise.

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

/// Time limit of a call that is expected to end at its limit.
const SHORT: Duration = Duration::from_secs(3);
/// Tolerance for slow machines.
const GRACE: Duration = Duration::from_secs(20);

/// Returns a tool that posts its arguments.
fn http_tool(url: &str) -> Value {
    json!({
        "description": "Does what its `id` stands for.",
        "executor": {"kind": "http", "method": "POST", "url": url, "allow_private": true},
    })
}

/// Adds settings to a tool.
fn with(mut tool: Value, settings: &Value) -> Value {
    let tool_settings = tool.as_object_mut().unwrap();
    tool_settings.extend(settings.as_object().unwrap().clone());
    tool
}

/// Declares a tool as idempotent, with retries almost without pauses.
fn repeatable(tool: Value, max_attempts: u32) -> Value {
    let retry = json!({"max_attempts": max_attempts, "initial_delay": "1ms"});
    with(tool, &json!({"idempotent": true, "retry": retry}))
}

fn arguments(id: &str) -> String {
    json!({"id": id}).to_string()
}

/// Returns the outcome of a call: `fine`, or the kind of its error. The answer must belong to this call.
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
