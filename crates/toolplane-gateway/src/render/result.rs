//! Outcomes of calls as results of the protocol.

use mcp_server::Answer;
use mcp_wire::Era;
use raw_json::{JsonKind, RawJson};
use serde::Serialize;
use toolplane::core::{Body, ErrorKind, Outcome, PendingCall, Reply, ToolError};

use super::error::{ERROR, PENDING, error_details, pending_details};

/// Text block of content, which models read.
#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// Returns the reply of a call, or an error if the call ended without one. The client has no way to continue such a call.
pub(crate) fn into_reply(outcome: Outcome) -> Result<Reply, ToolError> {
    let unfinished = |kind, message: &str| Err(ToolError::new(kind, message));
    let missing = ErrorKind::MissingCapability;
    match outcome {
        Outcome::Reply(reply) => Ok(reply),
        Outcome::NeedsInput(_) => unfinished(
            missing,
            "the tool asks for input, which this request cannot provide",
        ),
        Outcome::Pending(pending) if pending.is_at_work() => {
            unfinished(ErrorKind::Unavailable, &pending.advice())
        }
        Outcome::Pending(pending) => {
            let message = format!("the call waits for a decision: {}", pending.reason);
            unfinished(ErrorKind::Unavailable, &message)
        }
        Outcome::Task(_) => unfinished(
            missing,
            "the tool continues as a task, which this client does not support",
        ),
        _ => unfinished(ErrorKind::Unavailable, "the call ended without a result"),
    }
}

/// Renders the reply of a tool.
pub(crate) fn tool_result(reply: &Reply, era: Era) -> Answer {
    match &reply.body {
        Body::Result(result) => relay_result(result, reply, era),
        Body::Value(value) => value_result(value, reply, era),
    }
}

/// Relays a result of the upstream unchanged, except for our own members of `_meta`.
///
/// `resultType` is corrected for modern clients: legacy servers may use the member for anything, and another value would
/// make a modern client take the result for questions.
pub(crate) fn relay_result(result: &RawJson, reply: &Reply, era: Era) -> Answer {
    const COMPLETE: &str = "\"complete\"";
    let mut members = result.parts();
    let is_mistakable =
        era == Era::Modern && members.any(|(key, value)| key == "resultType" && value.as_str() != COMPLETE);
    let corrected = is_mistakable.then(|| {
        result
            .with_members(&[("resultType", RawJson::from("complete"))])
            .ok()
    });
    let result = corrected.flatten().unwrap_or_else(|| result.clone());
    if reply.meta().is_empty() {
        return Answer::from(result);
    }
    Answer::from(mcp_wire::with_meta(Some(&result), reply.meta()))
}

/// Renders the contents of a resource.
///
/// Modern results say how long and for whom they may be cached. Legacy servers do not send the lifetime, so it is 0 for
/// theirs. A server that allows a shared cache does not know who may read the resource here, so `is_public` has the last
/// word.
pub(crate) fn resource_result(
    result: &RawJson,
    reply: &Reply,
    era: Era,
    is_public: impl FnOnce() -> bool,
) -> Answer {
    if era == Era::Legacy {
        return relay_result(result, reply, era);
    }
    let mut changed = Vec::new();
    if result.get("ttlMs").is_none() {
        changed.push(("ttlMs", RawJson::from(0_u64)));
    }
    let scope = result.get("cacheScope").and_then(|scope| scope.string());
    let is_scope_valid = match scope.as_deref() {
        Some("private") => true,
        // Our own members of `_meta` are about this one call.
        Some("public") => reply.meta().is_empty() && is_public(),
        _ => false,
    };
    if !is_scope_valid {
        changed.push(("cacheScope", RawJson::from("private")));
    }
    if changed.is_empty() {
        return relay_result(result, reply, era);
    }
    match result.with_members(&changed) {
        Ok(result) => relay_result(&result, reply, era),
        Err(_) => relay_result(result, reply, era),
    }
}

/// Renders the reply of a tool as the result in the state of a task.
pub(crate) fn task_result(reply: &Reply, era: Era) -> RawJson {
    match &reply.body {
        Body::Result(result) if reply.meta().is_empty() => result.clone(),
        Body::Result(result) => mcp_wire::with_meta(Some(result), reply.meta()),
        Body::Value(value) => value_members(value, reply, era),
    }
}

/// Renders a plain value: as text for the model, and as structured content for programs.
fn value_result(value: &RawJson, reply: &Reply, era: Era) -> Answer {
    Answer::untyped(value_members(value, reply, era))
}

fn value_members(value: &RawJson, reply: &Reply, era: Era) -> RawJson {
    let string = value.string();
    let mut members = vec![("content", content(string.as_deref().unwrap_or(value.as_str())))];
    // Up to 2025-11-25 structured content must be an object. A string is already complete as text.
    if value.kind() == JsonKind::Object || (era == Era::Modern && string.is_none()) {
        members.push(("structuredContent", value.clone()));
    }
    if reply.is_error {
        members.push(("isError", RawJson::from(true)));
    }
    if !reply.meta().is_empty() {
        members.push(("_meta", RawJson::from_members(reply.meta())));
    }
    RawJson::from_members(&members)
}

/// Renders a failed call of a tool: as text for the model, and in `_meta` for programs.
pub(crate) fn failed_tool_result(error: &ToolError) -> Answer {
    Answer::untyped(failure_reply(error).raw().clone())
}

/// Renders a call of a tool that waits for a decision, or for the tool's work: as text for the model, and in `_meta` for programs.
pub(crate) fn pending_tool_result(pending: &PendingCall) -> Answer {
    let text = format!("pending: {}", pending.advice());
    Answer::untyped(RawJson::from_members(&[
        ("content", content(&text)),
        // There is no result yet: a client must not check this against the output schema.
        ("isError", RawJson::from(true)),
        (
            "_meta",
            RawJson::from_members(&[(PENDING, pending_details(pending))]),
        ),
    ]))
}

/// Returns a failed call as the reply of a tool.
pub(crate) fn failure_reply(error: &ToolError) -> Reply {
    let kind = error.kind();
    let text = format!("{kind}: {}; {}", error.message(), error.advice());
    let result = RawJson::from_members(&[
        ("content", content(&text)),
        ("isError", RawJson::from(true)),
        ("_meta", RawJson::from_members(&[(ERROR, error_details(error))])),
    ]);
    Reply::result(result, true)
}

fn content(text: &str) -> RawJson {
    let block = Text { r#type: "text", text };
    RawJson::from_serialize(&[block]).expect("text can be written")
}
