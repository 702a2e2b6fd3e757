//! Outcomes of a call: a reply, or a reason why there is none yet.

mod read;
mod reply;
mod task;
mod task_form;

use std::{sync::Arc, time::Duration};

use raw_json::RawJson;
use serde_json::Value;

use crate::format_duration;

pub use self::{
    reply::{Body, Reply},
    task::{Task, TaskHandle, TaskMode, TaskRequest},
    task_form::TaskForm,
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

/// Call that waits for a decision, or for the end of work that the tool has begun.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PendingCall {
    /// Opaque handle that identifies the pending call.
    pub handle: Arc<str>,
    /// Reason for waiting.
    pub reason: String,
    /// Details for programs, as one object.
    pub detail: Option<RawJson>,
    /// Time after which the same call may be made again for its result, if the tool is at work. `None` if it waits for a
    /// decision.
    pub retry_after: Option<Duration>,
    /// `true` if parts of the call were done before the decision that it waits for, as by a workflow. They are not done again.
    pub has_begun: bool,
}

impl PendingCall {
    /// Creates a pending call without details.
    #[must_use]
    pub fn new(handle: impl Into<Arc<str>>, reason: impl Into<String>) -> Self {
        Self {
            handle: handle.into(),
            reason: reason.into(),
            detail: None,
            retry_after: None,
            has_begun: false,
        }
    }

    /// Sets whether parts of the call were done already.
    #[must_use]
    pub fn with_begun(mut self, has_begun: bool) -> Self {
        self.has_begun = has_begun;
        self
    }

    /// Says that the tool has begun its work: the same call, made again after this time, waits for the same work.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Duration) -> Self {
        self.retry_after = Some(retry_after);
        self
    }

    /// Says for a model what the call waits for, and what to do.
    #[must_use]
    pub fn advice(&self) -> String {
        let (handle, reason) = (&self.handle, &self.reason);
        match self.retry_after {
            Some(pause) => format!(
                "the tool is still at work, as `{handle}`; make the same call again, unchanged, in about {} to get its result",
                format_duration(pause)
            ),
            None => {
                let done = match self.has_begun {
                    true => "a part was done and will not be done again",
                    false => "nothing was done yet",
                };
                format!(
                    "{done}; the call waits for {reason}, requested as `{handle}`. Tell the user; once it is given, repeat the \
                     same call unchanged"
                )
            }
        }
    }

    /// Returns `true` if the tool is at work. Otherwise the call waits for a decision.
    #[must_use]
    pub fn is_at_work(&self) -> bool {
        self.retry_after.is_some()
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
