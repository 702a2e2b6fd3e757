//! States of tasks as JSON: what servers send, and what clients see of it.

use std::time::Duration;

use mcp_wire::{Era, RpcError, code};
use raw_json::RawJson;
use toolplane::core::{ErrorKind, TaskHandle, ToolError};

use super::store::{MAX_LIFETIME, TaskStore};
use crate::render::task_result;

/// Time until a task is polled again if its server suggests none.
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_millis(500);
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(50);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(60);

/// Returns the state of a task as its client sees it, and records it in the store. A state that does not describe the task is
/// returned unchanged.
pub(super) fn record_state(tasks: &TaskStore, id: &str, state: &RawJson) -> RawJson {
    if state.get("taskId").is_none() {
        return state.clone();
    }
    let outward = outward_task(state, id);
    tasks.record(id, &outward, lifetime(state));
    outward
}

/// Returns the state of a task with its result, if it has one. The result in the state that its server sent has passed no
/// layer, so the reply that has replaces it.
pub(super) fn with_result(handle: &TaskHandle, era: Era) -> RawJson {
    let Some(reply) = &handle.result else {
        return handle.state.clone();
    };
    let result = [("result", task_result(reply, era))];
    let state = handle.state.with_members(&result);
    state.unwrap_or_else(|_| handle.state.clone())
}

/// Returns a task as its client sees it: under the id of the gateway, and with the lifetime that the gateway gives it.
pub(crate) fn outward_task(task: &RawJson, id: &str) -> RawJson {
    let mut changed = vec![("taskId", RawJson::from(id))];
    for key in ["ttl", "ttlMs"] {
        if task.get(key).is_some() && lifetime(task).is_none_or(|lifetime| lifetime > MAX_LIFETIME) {
            let longest = u64::try_from(MAX_LIFETIME.as_millis()).unwrap_or(u64::MAX);
            changed.push((key, RawJson::from(longest)));
        }
    }
    task.with_members(&changed).expect("what has an id is an object")
}

/// Returns the time for which a server keeps a task, counted from its creation.
pub(super) fn lifetime(task: &RawJson) -> Option<Duration> {
    milliseconds(task, ["ttlMs", "ttl"])
}

/// Returns the time until a task may be polled again.
pub(super) fn poll_interval(task: &RawJson) -> Duration {
    let interval = milliseconds(task, ["pollIntervalMs", "pollInterval"]);
    let interval = interval.unwrap_or(DEFAULT_POLL_INTERVAL);
    interval.clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL)
}

/// Returns the `status` of a task, such as `working`.
pub(super) fn status(task: &RawJson) -> Option<String> {
    task.get("status").and_then(|status| status.string())
}

fn milliseconds(task: &RawJson, keys: [&str; 2]) -> Option<Duration> {
    let given = keys.iter().find_map(|key| task.get(key))?;
    Duration::try_from_secs_f64(given.to::<f64>().ok()? / 1000.0).ok()
}

/// Returns the error for an unknown task. It is the same for tasks of other clients, so that ids cannot be probed.
pub(super) fn unknown_task() -> RpcError {
    RpcError::new(code::INVALID_PARAMS, "there is no such task, or it has expired")
}

/// Returns the error for a full store.
pub(super) fn too_many_tasks() -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, "too many tasks exist already")
}

/// Returns the error for a server whose answer does not describe the task.
pub(super) fn missing_state() -> ToolError {
    ToolError::new(
        ErrorKind::Protocol,
        "the server did not describe the state of the task",
    )
}
