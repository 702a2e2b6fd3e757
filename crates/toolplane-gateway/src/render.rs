//! What came of a call, in the protocol's words.

use mcp_server::Answer;
use mcp_wire::Era;
use raw_json::{Kind, RawJson};
use serde::Serialize;
use toolplane::core::{Body, ErrorKind, Outcome, Reply, ToolError};

/// Under which key of `_meta` a client finds why a call failed.
const ERROR: &str = "dev.toolplane/error";
/// What an upstream says about an error is passed on up to this size.
const MAX_DETAIL: usize = 16 * 1024;

/// A block of content, which models read.
#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: &'a str,
}

pub(crate) fn outcome(outcome: &Outcome, era: Era) -> Answer {
    match outcome {
        Outcome::Reply(reply) => self::reply(reply, era),
        Outcome::NeedsInput(_) => unfinished("the tool asks for input, which cannot be given here"),
        Outcome::Pending(pending) => {
            unfinished(&format!("the call waits for a decision: {}", pending.reason))
        }
        Outcome::Task(_) => unfinished("the tool works on in the background, where it cannot be followed"),
        _ => unfinished("the call has not come to a result"),
    }
}

fn unfinished(message: &str) -> Answer {
    error(&ToolError::new(ErrorKind::Unavailable, message))
}

fn reply(reply: &Reply, era: Era) -> Answer {
    match &reply.body {
        // As it came, with nothing but our own notes put in.
        Body::Result(result) if reply.meta().is_empty() => Answer::from(result.clone()),
        Body::Result(result) => Answer::from(mcp_wire::with_meta(Some(result), reply.meta())),
        Body::Value(value) => self::value(value, reply, era),
    }
}

/// A plain value: as text for the model, and as it is for programs.
fn value(value: &RawJson, reply: &Reply, era: Era) -> Answer {
    let string = value.string();
    let mut members = vec![("content", content(string.as_deref().unwrap_or(value.as_str())))];
    // Up to 2025-11-25 only objects are structured; a string is wholly said by the text.
    if value.kind() == Kind::Object || (era == Era::Modern && string.is_none()) {
        members.push(("structuredContent", value.clone()));
    }
    if reply.is_error {
        members.push(("isError", RawJson::from(true)));
    }
    if !reply.meta().is_empty() {
        members.push(("_meta", object(reply.meta())));
    }
    Answer::untyped(object(&members))
}

/// A call that failed: in words for the model, and in `_meta` for programs.
pub(crate) fn error(error: &ToolError) -> Answer {
    let kind = error.kind();
    let mut why = vec![
        ("kind", RawJson::from(kind.as_str())),
        ("message", RawJson::from(error.message())),
        ("retryable", RawJson::from(kind.is_retryable())),
    ];
    if let Some(after) = error.retry_after() {
        let milliseconds = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        why.push(("retry_after_ms", RawJson::from(milliseconds)));
    }
    if let Some(detail) = error.detail().filter(|detail| detail.len() <= MAX_DETAIL) {
        why.push(("detail", detail.clone()));
    }
    let text = format!("{kind}: {}; {}", error.message(), kind.advice());
    Answer::untyped(object(&[
        ("content", content(&text)),
        ("isError", RawJson::from(true)),
        ("_meta", object(&[(ERROR, object(&why))])),
    ]))
}

fn content(text: &str) -> RawJson {
    let block = Text { r#type: "text", text };
    RawJson::from_serialize(&[block]).expect("text can be written")
}

pub(crate) fn object(members: &[(&str, RawJson)]) -> RawJson {
    RawJson::object()
        .with_members(members)
        .expect("an empty object is an object")
}
