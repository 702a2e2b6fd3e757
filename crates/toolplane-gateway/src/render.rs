//! What came of a call, in the protocol's words.

use mcp_server::Answer;
use mcp_wire::Era;
use raw_json::{JsonKind, RawJson};
use serde::Serialize;
use toolplane::core::{Body, ErrorKind, Outcome, PendingCall, Reply, ToolError};

use crate::fault;

/// A block of content, which models read.
#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// The reply of a call that is finished; nobody is left who could go on with another.
pub(crate) fn finished(outcome: Outcome) -> Result<Reply, ToolError> {
    let unfinished = |kind, message: &str| Err(ToolError::new(kind, message));
    let never = ErrorKind::MissingCapability;
    match outcome {
        Outcome::Reply(reply) => Ok(reply),
        Outcome::NeedsInput(_) => unfinished(never, "the tool asks for input, which cannot be given here"),
        Outcome::Pending(pending) => {
            let message = format!("the call waits for a decision: {}", pending.reason);
            unfinished(ErrorKind::Unavailable, &message)
        }
        Outcome::Task(_) => unfinished(
            never,
            "the tool works on in the background, where it cannot be followed",
        ),
        _ => unfinished(ErrorKind::Unavailable, "the call has not come to a result"),
    }
}

/// The result of a tool.
pub(crate) fn reply(reply: &Reply, era: Era) -> Answer {
    match &reply.body {
        Body::Result(result) => relayed(result, reply, era),
        Body::Value(value) => self::value(value, reply, era),
    }
}

/// A result in the protocol's own shape: as it came, with nothing but our own notes put in. What a legacy server says of the type of
/// its result means nothing, and would have a modern client take it for questions.
pub(crate) fn relayed(result: &RawJson, reply: &Reply, era: Era) -> Answer {
    const COMPLETE: &str = "\"complete\"";
    let mut members = result.parts();
    let is_odd =
        era == Era::Modern && members.any(|(key, value)| key == "resultType" && value.as_str() != COMPLETE);
    let mended = is_odd.then(|| {
        result
            .with_members(&[("resultType", RawJson::from("complete"))])
            .ok()
    });
    let result = mended.flatten().unwrap_or_else(|| result.clone());
    if reply.meta().is_empty() {
        return Answer::from(result);
    }
    Answer::from(mcp_wire::with_meta(Some(&result), reply.meta()))
}

/// What a resource holds. Modern clients want to know how long that is good for, which older servers do not say, and for
/// whom: a server that says for all does not know who may read it here, which `is_public` tells.
pub(crate) fn contents(
    result: &RawJson,
    reply: &Reply,
    era: Era,
    is_public: impl FnOnce() -> bool,
) -> Answer {
    if era == Era::Legacy {
        return relayed(result, reply, era);
    }
    let mut changed = Vec::new();
    if result.get("ttlMs").is_none() {
        changed.push(("ttlMs", RawJson::from(0_u64)));
    }
    let scope = result.get("cacheScope").and_then(|scope| scope.string());
    let is_as_it_should = match scope.as_deref() {
        Some("private") => true,
        // Our own notes are about this one call.
        Some("public") => reply.meta().is_empty() && is_public(),
        _ => false,
    };
    if !is_as_it_should {
        changed.push(("cacheScope", RawJson::from("private")));
    }
    if changed.is_empty() {
        return relayed(result, reply, era);
    }
    match result.with_members(&changed) {
        Ok(result) => relayed(&result, reply, era),
        Err(_) => relayed(result, reply, era),
    }
}

/// A plain value: as text for the model, and as it is for programs.
fn value(value: &RawJson, reply: &Reply, era: Era) -> Answer {
    let string = value.string();
    let mut members = vec![("content", content(string.as_deref().unwrap_or(value.as_str())))];
    // Up to 2025-11-25 only objects are structured; a string is wholly said by the text.
    if value.kind() == JsonKind::Object || (era == Era::Modern && string.is_none()) {
        members.push(("structuredContent", value.clone()));
    }
    if reply.is_error {
        members.push(("isError", RawJson::from(true)));
    }
    if !reply.meta().is_empty() {
        members.push(("_meta", RawJson::from_members(reply.meta())));
    }
    Answer::untyped(RawJson::from_members(&members))
}

/// A call that failed: in words for the model, and in `_meta` for programs.
pub(crate) fn error(error: &ToolError) -> Answer {
    Answer::untyped(failure(error).raw().clone())
}

/// A call that waits for somebody's decision: in words for the model, and in `_meta` for programs.
pub(crate) fn pending(pending: &PendingCall) -> Answer {
    let text = format!(
        "pending: nothing was done yet; the call waits for {}, asked for as `{}`. Tell the user; when it is given, make the same call again, unchanged",
        pending.reason, pending.handle
    );
    Answer::untyped(RawJson::from_members(&[
        ("content", content(&text)),
        // Nothing was done: a client must not look for what the output schema promises.
        ("isError", RawJson::from(true)),
        (
            "_meta",
            RawJson::from_members(&[(fault::PENDING, fault::waits_for(pending))]),
        ),
    ]))
}

/// A call that failed, as the result of a tool.
pub(crate) fn failure(error: &ToolError) -> Reply {
    let kind = error.kind();
    let text = format!("{kind}: {}; {}", error.message(), error.advice());
    let result = RawJson::from_members(&[
        ("content", content(&text)),
        ("isError", RawJson::from(true)),
        (
            "_meta",
            RawJson::from_members(&[(fault::ERROR, fault::why(error))]),
        ),
    ]);
    Reply::result(result, true)
}

fn content(text: &str) -> RawJson {
    let block = Text { r#type: "text", text };
    RawJson::from_serialize(&[block]).expect("text can be written")
}
