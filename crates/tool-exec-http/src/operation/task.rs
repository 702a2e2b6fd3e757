//! Operations as tasks, which clients poll.

use std::{sync::Arc, time::SystemTime};

use tokio::sync::Mutex;
use tool_core::{
    Backend, CallContext, DynBackend, ErrorKind, Invoke, Outcome, Reply, Target, Task, TaskForm, TaskHandle,
    TaskMode, TaskRequest, ToolError,
};

use super::Operation;
use crate::call::HttpBackend;

/// Backend of one operation that became a task.
struct OperationTask {
    backend: Arc<HttpBackend>,
    form: TaskForm,
    state: Mutex<State>,
}

enum State {
    Working(Box<Operation>),
    Ended(Result<Reply, ToolError>),
    Cancelled,
}

/// Returns the handle of the task that an operation becomes.
pub(crate) fn task_handle(
    backend: Arc<HttpBackend>,
    mode: &TaskMode,
    operation: Operation,
    created: SystemTime,
) -> TaskHandle {
    let id = Arc::clone(&operation.handle);
    let form = TaskForm::new(mode, created, operation.lifetime(), operation.interval());
    let runner = OperationTask {
        backend,
        form: form.clone(),
        state: Mutex::new(State::Working(Box::new(operation))),
    };
    form.created(Task::new(id, Arc::new(runner) as Arc<dyn DynBackend>))
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
        let (task, now) = (task.clone(), cx.clock.wall());
        let handle = match &*state {
            State::Working(operation) => self.form.working(task, now, operation.last_failure(), (0, &[])),
            State::Cancelled => self.form.cancelled(task, now),
            State::Ended(ended) => self.form.ended(task, now, ended),
        };
        Ok(Outcome::Task(Box::new(handle)))
    }
}

impl Backend for OperationTask {
    fn protocol(&self) -> Option<&'static str> {
        Some("http")
    }
}
