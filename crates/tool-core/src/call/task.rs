use std::{fmt, sync::Arc};

use raw_json::RawJson;

use crate::{DynBackend, Reply};

/// Whether a caller can follow a call as a task, whose work goes on when the call has been answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskMode {
    /// It can, if whoever runs the tool makes it one.
    Allowed,
    /// It asks for one, with these parameters: an object with the time for which the task is to be kept and the like,
    /// as the caller wrote it.
    Requested(RawJson),
}

/// A task that somebody works on, as requests about it are made: see [`Target::Task`](crate::Target::Task).
#[derive(Clone)]
pub struct Task {
    /// What whoever works on it knows it by. It is not for callers: two servers may have the same, and who knows it
    /// may get at the task.
    pub id: Arc<str>,
    /// What answers requests about it. What the task needs, such as a connection, is kept as long as this is.
    pub runner: Arc<dyn DynBackend>,
}

/// What is asked about a task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskRequest {
    /// How it is.
    Get,
    /// What it has come to, which is waited for.
    Result,
    /// To go on with what it needed from the caller: the answers as the caller wrote them.
    Update(RawJson),
    /// To end before it is done.
    Cancel,
}

/// A task, and what is known of it: what a call that became one is answered with, and a look at one.
#[derive(Debug, Clone)]
pub struct TaskHandle {
    /// The task.
    pub task: Task,
    /// The answer about it as it was written, with the id that is not for callers.
    pub state: RawJson,
    /// What it has come to, where the answer about it says so.
    pub result: Option<Reply>,
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").finish_non_exhaustive()
    }
}
