use std::sync::Arc;

use raw_json::RawJson;

use crate::TaskHandle;

/// Outcome of a call without an error. Only a [`Reply`] is final: nothing else is cached, shared, stored or
/// validated.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Outcome {
    /// The tool answered.
    Reply(Reply),
    /// The tool needs input from the caller first.
    NeedsInput(Box<InputRequest>),
    /// The call waits for a decision.
    Pending(Box<PendingCall>),
    /// The tool continues in the background, or the answer to a request about such a task.
    Task(Box<TaskHandle>),
}

/// Result of a tool: its text as received, and the members that layers add.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Result as the tool sent it.
    pub body: Body,
    /// `true` if the tool itself reports a failure.
    pub is_error: bool,
    is_partial: bool,
    meta: Vec<(&'static str, RawJson)>,
}

/// Shape of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Plain value, such as the JSON of an HTTP API.
    Value(RawJson),
    /// Result in MCP's shape, with `content`, `structuredContent` and others: relayed byte for byte.
    Result(RawJson),
}

/// Input that a tool needs from the caller before it can answer.
#[derive(Debug, Clone)]
pub struct InputRequest {
    /// Requests for input, as the upstream wrote them.
    pub requests: RawJson,
    /// State that the upstream expects back with the answers.
    pub state: Option<RawJson>,
}

/// Answers to an [`InputRequest`]. The caller repeats the call with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resume {
    /// Answers, as the caller wrote them.
    pub responses: RawJson,
    /// State of the upstream from the previous round.
    pub state: Option<RawJson>,
}

/// Call that waits for a decision.
#[derive(Debug, Clone)]
pub struct PendingCall {
    /// Opaque handle that identifies the pending call.
    pub handle: Arc<str>,
    /// Reason for waiting.
    pub reason: String,
    /// Details for programs, as one object.
    pub detail: Option<RawJson>,
}

impl Reply {
    /// Creates a reply with a plain value.
    #[must_use]
    pub fn value(value: RawJson) -> Self {
        Self {
            body: Body::Value(value),
            is_error: false,
            is_partial: false,
            meta: Vec::new(),
        }
    }

    /// Creates a reply with a result in MCP's shape.
    #[must_use]
    pub fn result(result: RawJson, is_error: bool) -> Self {
        Self {
            body: Body::Result(result),
            is_error,
            is_partial: false,
            meta: Vec::new(),
        }
    }

    /// Returns the text, whatever its shape.
    #[must_use]
    pub fn raw(&self) -> &RawJson {
        match &self.body {
            Body::Value(raw) | Body::Result(raw) => raw,
        }
    }

    /// Returns the part that an output schema describes: the plain value, or the structured content of an MCP result.
    #[must_use]
    pub fn structured(&self) -> Option<RawJson> {
        match &self.body {
            Body::Value(value) => Some(value.clone()),
            Body::Result(result) => result.get("structuredContent"),
        }
    }

    /// Copies the result out of the message that it is a slice of. Call this before storing a reply.
    pub fn detach(&mut self) {
        let (Body::Value(raw) | Body::Result(raw)) = &mut self.body;
        *raw = raw.detached();
    }

    /// Marks the result as partial.
    pub fn mark_partial(&mut self) {
        self.is_partial = true;
    }

    /// Returns `true` if the result is known to be partial.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Adds a member to the reply's `_meta`, which is written at the wire.
    pub fn add_meta(&mut self, key: &'static str, value: RawJson) {
        self.meta.push((key, value));
    }

    /// Removes and returns the members that layers added to `_meta`.
    pub fn take_meta(&mut self) -> Vec<(&'static str, RawJson)> {
        std::mem::take(&mut self.meta)
    }

    /// Returns the members that layers added to `_meta`.
    #[must_use]
    pub fn meta(&self) -> &[(&'static str, RawJson)] {
        &self.meta
    }
}

impl From<Reply> for Outcome {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}
