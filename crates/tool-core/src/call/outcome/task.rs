use std::{fmt, sync::Arc};

use raw_json::RawJson;

use crate::{DynBackend, Reply};

/// Selects whether a call may become a task, whose work continues after the call was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskMode {
    /// The call may become a task if the backend decides so.
    Allowed,
    /// The caller requests a task with these parameters, as it wrote them: an object with the time to keep the task
    /// and others.
    Requested(RawJson),
}

/// Task of a backend: see [`Target::Task`](crate::Target::Task).
#[derive(Clone)]
#[non_exhaustive]
pub struct Task {
    /// Id that the backend gave to the task. Not for callers: ids of two servers may be equal, and whoever knows an
    /// id may control the task.
    pub id: Arc<str>,
    /// Backend that answers requests about the task. It keeps resources of the task, such as a connection, while it
    /// exists.
    pub runner: Arc<dyn DynBackend>,
}

impl Task {
    /// Creates the task with this id, which `runner` works on.
    #[must_use]
    pub fn new(id: impl Into<Arc<str>>, runner: Arc<dyn DynBackend>) -> Self {
        Self {
            id: id.into(),
            runner,
        }
    }
}

/// Request about a task, after `tasks/get`, `tasks/result`, `tasks/update` and `tasks/cancel` of MCP.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskRequest {
    /// Returns the state of the task.
    Get,
    /// Waits for the result of the task.
    Result,
    /// Sends input that the task asked for: the answers as the caller wrote them.
    Update(RawJson),
    /// Cancels the task.
    Cancel,
}

/// Task and its known state: the answer to a call that became a task, or to [`TaskRequest::Get`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TaskHandle {
    /// Task.
    pub task: Task,
    /// State as the backend wrote it, including the id that is not for callers.
    pub state: RawJson,
    /// Result, if the state contains it.
    pub result: Option<Reply>,
}

impl TaskHandle {
    /// Creates the handle of a task in this state, without a result.
    #[must_use]
    pub fn new(task: Task, state: RawJson) -> Self {
        Self {
            task,
            state,
            result: None,
        }
    }

    /// Sets the result of a finished task.
    #[must_use]
    pub fn with_result(mut self, result: Option<Reply>) -> Self {
        self.result = result;
        self
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").finish_non_exhaustive()
    }
}
