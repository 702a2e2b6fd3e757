//! Tasks that callers follow themselves. Requests about a task go to the connection that it was created on.

use std::sync::Arc;

use mcp_client::{ClientErrorKind as Fault, Connection};
use mcp_wire::{Era, method};
use raw_json::{JsonKind, RawJson};
use tool_core::{
    Backend, CallContext, DynBackend, ErrorKind, Invoke, Outcome, Reply, Target, Task, TaskHandle,
    TaskRequest, ToolError,
};

use super::protocol::{self, TaskState, declare_extension};
use crate::{
    McpServer,
    calls::request_options,
    connection::{Checkout, ServerConnection, TaskHold},
    errors::request_error,
    sandbox::{SandboxState, add_sandbox},
};

/// Backend of one task. Its connection is not closed as idle while this exists.
struct TaskBackend {
    id: Arc<str>,
    server: String,
    sandbox: Option<Arc<SandboxState>>,
    server_connection: Arc<ServerConnection>,
    /// Connection on which a legacy server has created the task. On another one, the id may belong to somebody else.
    connection: Connection,
    _hold: TaskHold,
}

/// Returns the handle of a task that a call has become, from the server's answer. Returns `None` if the task has no id.
pub(crate) fn task_handle(
    server: &McpServer,
    checkout: &Checkout,
    task: &RawJson,
    answer: RawJson,
) -> Option<TaskHandle> {
    let id: Arc<str> = protocol::id(task)?.string()?.into();
    // The task may ask at any time, even when its call is long over.
    drop(checkout.begin_work());
    let backend = TaskBackend {
        id: Arc::clone(&id),
        server: server.settings().name.clone(),
        sandbox: server.sandbox().cloned(),
        server_connection: checkout.server_connection().clone(),
        connection: checkout.connection.clone(),
        _hold: checkout.server_connection().slots.hold_for_task(),
    };
    let runner: Arc<dyn DynBackend> = Arc::new(backend);
    checkout
        .server_connection()
        .slots
        .router
        .follow_task(&id, &runner);
    Some(TaskHandle::new(Task::new(id, runner), answer))
}

impl Drop for TaskBackend {
    fn drop(&mut self) {
        self.server_connection.slots.router.forget_task(&self.id);
    }
}

impl Invoke for TaskBackend {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let Target::Task { task, request, .. } = &cx.target else {
            let message = "a task cannot be called";
            return Err(ToolError::new(ErrorKind::Internal, message));
        };
        let era = self.connection.server().era();
        let params = protocol::params(&RawJson::from(&*task.id));
        let (method, params) = match (request, era) {
            (TaskRequest::Get, _) => (method::TASKS_GET, params),
            (TaskRequest::Cancel, _) => (method::TASKS_CANCEL, params),
            (TaskRequest::Result, Era::Legacy) => (method::TASKS_RESULT, params),
            (TaskRequest::Update(responses), Era::Modern) => {
                let responses = [("inputResponses", responses.clone())];
                (
                    method::TASKS_UPDATE,
                    params.with_members(&responses).expect("an object"),
                )
            }
            _ => {
                let message = format!(
                    "the tasks of the server `{}` do not support this request",
                    self.server
                );
                return Err(ToolError::new(ErrorKind::Unavailable, message));
            }
        };
        let answer = self.request(cx, era, method, params).await?;
        if answer.kind() != JsonKind::Object {
            let message = format!(
                "the server `{}` answered with a result that is not an object",
                self.server
            );
            return Err(ToolError::new(ErrorKind::Protocol, message));
        }
        if *request == TaskRequest::Result {
            return Ok(self.reply(answer).into());
        }
        let is_done = *request == TaskRequest::Get && TaskState::read(&answer).status == "completed";
        let result = answer
            .get("result")
            .filter(|result| is_done && era == Era::Modern && result.kind() == JsonKind::Object);
        Ok(Outcome::Task(Box::new(
            TaskHandle::new(task.clone(), answer).with_result(result.map(|result| self.reply(result))),
        )))
    }
}

impl Backend for TaskBackend {
    fn protocol(&self) -> Option<&'static str> {
        Some("mcp")
    }
}

impl TaskBackend {
    fn reply(&self, result: RawJson) -> Reply {
        let is_error = result.get("isError").is_some_and(|flag| flag.as_str() == "true");
        let mut reply = Reply::result(result, is_error);
        add_sandbox(self.sandbox.as_ref(), &mut reply);
        reply
    }

    async fn request(
        &self,
        cx: &CallContext,
        era: Era,
        method: &str,
        params: RawJson,
    ) -> Result<RawJson, ToolError> {
        let slot = self.server_connection.slots.begin(cx);
        let mut options = request_options(cx);
        options.on_progress = None;
        let connection = match era {
            Era::Legacy => self.connection.clone(),
            Era::Modern => {
                declare_extension(&mut options);
                let connection = self.server_connection.ready_for(&slot.call).await;
                connection.map_err(|error| request_error(&self.server, error))?
            }
        };
        let answer = self
            .server_connection
            .request(&connection, &slot, (method, params.into()), options);
        answer.await.map_err(|error| match error.kind() {
            Fault::Closed(_) => {
                let message = format!(
                    "the connection to the server `{}` on which the task was created is gone",
                    self.server
                );
                // The task is gone as well: no other request finds it again.
                ToolError::new(ErrorKind::NotFound, message).with_source(error)
            }
            _ => request_error(&self.server, error),
        })
    }
}
