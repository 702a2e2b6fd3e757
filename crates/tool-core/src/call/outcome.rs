use std::sync::Arc;

use raw_json::RawJson;

use crate::TaskHandle;

/// How a call came out. Only a [`Reply`] is finished: nothing else is cached, shared, stored or validated.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Outcome {
    /// The tool has answered.
    Reply(Reply),
    /// The tool needs something from the caller first.
    NeedsInput(Box<InputRequest>),
    /// The call waits for someone's decision.
    Pending(Box<PendingCall>),
    /// The tool works on in the background; or what was asked about such work, unless it was for the result.
    Task(Box<TaskHandle>),
}

/// A tool's answer: the text as it came, and what layers add to it.
#[derive(Debug, Clone)]
pub struct Reply {
    /// What the tool answered.
    pub body: Body,
    /// Whether the tool itself says that it failed.
    pub is_error: bool,
    is_partial: bool,
    meta: Vec<(&'static str, RawJson)>,
}

/// The two shapes of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// A plain value, such as an HTTP API's JSON.
    Value(RawJson),
    /// A result in MCP's own shape, with `content`, `structuredContent` and the like: relayed byte for byte.
    Result(RawJson),
}

/// What a tool needs from the caller before it can answer.
#[derive(Debug, Clone)]
pub struct InputRequest {
    /// The requests, as the upstream wrote them.
    pub requests: RawJson,
    /// What the upstream wants back with the answers.
    pub state: Option<RawJson>,
}

/// What the caller gave for an [`InputRequest`], with which the same call is made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resume {
    /// The answers, as the caller wrote them.
    pub responses: RawJson,
    /// The upstream's state of the round before.
    pub state: Option<RawJson>,
}

/// A call that waits for someone's decision.
#[derive(Debug, Clone)]
pub struct PendingCall {
    /// What to ask about it with.
    pub handle: Arc<str>,
    /// What it waits for.
    pub reason: String,
    /// What programs are told about it, as one object.
    pub detail: Option<RawJson>,
}

impl Reply {
    /// A plain value.
    #[must_use]
    pub fn value(value: RawJson) -> Self {
        Self {
            body: Body::Value(value),
            is_error: false,
            is_partial: false,
            meta: Vec::new(),
        }
    }

    /// A result in MCP's own shape.
    #[must_use]
    pub fn result(result: RawJson, is_error: bool) -> Self {
        Self {
            body: Body::Result(result),
            is_error,
            is_partial: false,
            meta: Vec::new(),
        }
    }

    /// The text, whatever its shape.
    #[must_use]
    pub fn raw(&self) -> &RawJson {
        match &self.body {
            Body::Value(raw) | Body::Result(raw) => raw,
        }
    }

    /// What an output schema speaks of: the plain value, or the structured part of an MCP result.
    #[must_use]
    pub fn structured(&self) -> Option<RawJson> {
        match &self.body {
            Body::Value(value) => Some(value.clone()),
            Body::Result(result) => result.get("structuredContent"),
        }
    }

    /// Gives the answer bytes of its own, apart from the message that it may have been cut out of: for keeping it.
    pub fn detach(&mut self) {
        let (Body::Value(raw) | Body::Result(raw)) = &mut self.body;
        *raw = raw.detached();
    }

    /// Notes that the tool did not answer all of it.
    pub fn mark_partial(&mut self) {
        self.is_partial = true;
    }

    /// Whether the tool did not answer all of it, as far as that is known: see
    /// `PartialSettings` in `tool-policy`.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Adds a member to the reply's `_meta`, where it is written at the wire.
    pub fn add_meta(&mut self, key: &'static str, value: RawJson) {
        self.meta.push((key, value));
    }

    /// Takes away what layers added to `_meta`.
    pub fn take_meta(&mut self) -> Vec<(&'static str, RawJson)> {
        std::mem::take(&mut self.meta)
    }

    /// What layers added to `_meta`.
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
