//! Operations as tasks, which clients poll.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use raw_json::RawJson;
use serde_json::json;
use tokio::sync::Mutex;
use tool_core::{
    Backend, CallContext, DynBackend, ErrorKind, Invoke, Outcome, Reply, Target, Task, TaskHandle, TaskMode,
    TaskRequest, ToolError, rfc3339,
};

use super::Operation;
use crate::call::HttpBackend;

/// Backend of one operation that became a task.
struct OperationTask {
    backend: Arc<HttpBackend>,
    form: Form,
    created: SystemTime,
    lifetime: u64,
    interval: u64,
    state: Mutex<State>,
}

/// Form of a task's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Form of revision 2025-11-25.
    Requested,
    /// Form of the extension of the modern era.
    Extension,
}

enum State {
    Working(Box<Operation>),
    Ended(Result<Reply, ToolError>),
    Cancelled,
}

/// JSON-RPC code of a failed task (JSON-RPC 2.0, section 5.1).
const INTERNAL_ERROR: i32 = -32603;

/// Returns the handle of the task that an operation becomes.
pub(crate) fn task_handle(
    backend: Arc<HttpBackend>,
    mode: &TaskMode,
    operation: Operation,
    created: SystemTime,
) -> TaskHandle {
    let milliseconds = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let id = Arc::clone(&operation.handle);
    let form = match mode {
        TaskMode::Requested(_) => Form::Requested,
        _ => Form::Extension,
    };
    let runner = OperationTask {
        backend,
        form,
        created,
        lifetime: milliseconds(operation.lifetime()),
        interval: milliseconds(operation.interval()),
        state: Mutex::new(State::Working(Box::new(operation))),
    };
    let state = runner.describe(&id, "working", None, created);
    let state = match form {
        Form::Requested => RawJson::from_members(&[("task", state)]),
        Form::Extension => state
            .with_members(&[("resultType", RawJson::from("task"))])
            .expect("a task is an object"),
    };
    TaskHandle::new(Task::new(id, Arc::new(runner) as Arc<dyn DynBackend>), state)
}

impl OperationTask {
    /// Describes the task in the form that its client knows.
    fn describe(&self, id: &str, status: &str, message: Option<&str>, now: SystemTime) -> RawJson {
        let (ttl, interval) = match self.form {
            Form::Requested => ("ttl", "pollInterval"),
            Form::Extension => ("ttlMs", "pollIntervalMs"),
        };
        let mut members = vec![
            ("taskId", RawJson::from(id)),
            ("status", RawJson::from(status)),
            ("createdAt", RawJson::from(rfc3339(self.created).as_str())),
            ("lastUpdatedAt", RawJson::from(rfc3339(now).as_str())),
            (ttl, RawJson::from(self.lifetime)),
            (interval, RawJson::from(self.interval)),
        ];
        members.extend(message.map(|message| ("statusMessage", RawJson::from(message))));
        RawJson::from_members(&members)
    }

    /// Returns the task in this state. For a client of the extension, it includes the result.
    fn handle(&self, task: &Task, state: &State, now: SystemTime) -> TaskHandle {
        let describe = |status, message: Option<&str>| self.describe(&task.id, status, message, now);
        match state {
            State::Working(operation) => {
                TaskHandle::new(task.clone(), describe("working", operation.last_failure()))
            }
            State::Cancelled => TaskHandle::new(task.clone(), describe("cancelled", None)),
            State::Ended(Ok(reply)) => {
                let result = (self.form == Form::Extension).then(|| reply.clone());
                TaskHandle::new(task.clone(), describe("completed", None)).with_result(result)
            }
            State::Ended(Err(error)) => {
                let text = format!("{}: {}", error.kind(), error.message());
                let failed = describe("failed", Some(&text));
                let details = RawJson::from(json!({"code": INTERNAL_ERROR, "message": text}));
                let state = match self.form {
                    Form::Requested => failed,
                    Form::Extension => failed
                        .with_members(&[("error", details)])
                        .expect("a task is an object"),
                };
                TaskHandle::new(task.clone(), state)
            }
        }
    }
}

impl Invoke for OperationTask {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let Target::Task { task, request, .. } = &cx.target else {
            return Err(ToolError::new(ErrorKind::Internal, "a task cannot be called"));
        };
        let mut state = self.state.lock().await;
        match request {
            TaskRequest::Get => {
                if let State::Working(operation) = &mut *state
                    && let Some(ended) = operation.check(&self.backend, cx).await
                {
                    *state = State::Ended(ended);
                }
            }
            TaskRequest::Result => {
                while let State::Working(operation) = &mut *state {
                    operation.ready().await;
                    if let Some(ended) = operation.check(&self.backend, cx).await {
                        *state = State::Ended(ended);
                    }
                }
                return match &*state {
                    State::Ended(ended) => ended.clone().map(Outcome::from),
                    _ => Err(ToolError::new(ErrorKind::Cancelled, "the task was cancelled")),
                };
            }
            TaskRequest::Cancel => {
                // Nobody follows the work from now on. The API has no standard way to be told.
                if matches!(*state, State::Working(_)) {
                    *state = State::Cancelled;
                }
            }
            _ => {
                let message = "the tool asks for no input";
                return Err(ToolError::new(ErrorKind::InvalidArguments, message));
            }
        }
        let handle = self.handle(task, &state, cx.clock.wall());
        Ok(Outcome::Task(Box::new(handle)))
    }
}

impl Backend for OperationTask {
    fn protocol(&self) -> Option<&'static str> {
        Some("http")
    }
}
