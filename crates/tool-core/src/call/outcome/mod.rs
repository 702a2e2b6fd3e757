//! Outcomes of a call: a reply, or a reason why there is none yet.

mod read;
mod reply;
mod task;

use std::sync::Arc;

use raw_json::RawJson;
use serde_json::Value;

pub use self::{
    reply::{Body, Reply},
    task::{Task, TaskHandle, TaskMode, TaskRequest},
};

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

/// Input that a tool needs from the caller before it can answer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InputRequest {
    /// Requests for input, as the upstream wrote them.
    pub requests: RawJson,
    /// State that the upstream expects back with the answers.
    pub state: Option<RawJson>,
}

impl InputRequest {
    /// Creates a request for input without a state.
    #[must_use]
    pub fn new(requests: RawJson) -> Self {
        Self {
            requests,
            state: None,
        }
    }

    /// Sets the state that the upstream expects back with the answers.
    #[must_use]
    pub fn with_state(mut self, state: Option<RawJson>) -> Self {
        self.state = state;
        self
    }
}

/// Answers to an [`InputRequest`]. The caller repeats the call with them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resume {
    /// Answers, as the caller wrote them.
    pub responses: RawJson,
    /// State of the upstream from the previous round.
    pub state: Option<RawJson>,
}

impl Resume {
    /// Creates answers to a request without a state.
    #[must_use]
    pub fn new(responses: RawJson) -> Self {
        Self {
            responses,
            state: None,
        }
    }

    /// Sets the state of the previous round.
    #[must_use]
    pub fn with_state(mut self, state: Option<RawJson>) -> Self {
        self.state = state;
        self
    }
}

/// Call that waits for a decision.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PendingCall {
    /// Opaque handle that identifies the pending call.
    pub handle: Arc<str>,
    /// Reason for waiting.
    pub reason: String,
    /// Details for programs, as one object.
    pub detail: Option<RawJson>,
}

impl PendingCall {
    /// Creates a pending call without details.
    #[must_use]
    pub fn new(handle: impl Into<Arc<str>>, reason: impl Into<String>) -> Self {
        Self {
            handle: handle.into(),
            reason: reason.into(),
            detail: None,
        }
    }

    /// Sets the details for programs: one object.
    #[must_use]
    pub fn with_detail(mut self, detail: Option<RawJson>) -> Self {
        self.detail = detail;
        self
    }
}

impl From<Reply> for Outcome {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

impl From<RawJson> for Outcome {
    fn from(value: RawJson) -> Self {
        Reply::value(value).into()
    }
}

impl From<Value> for Outcome {
    fn from(value: Value) -> Self {
        Reply::from(value).into()
    }
}
