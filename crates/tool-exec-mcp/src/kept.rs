//! Tasks that callers follow themselves: requests about one go where it was made.

use std::sync::Arc;

use mcp_client::{ClientErrorKind as Fault, Connection};
use mcp_wire::{Era, method};
use raw_json::{JsonKind, RawJson};
use tool_core::{
    Backend, CallContext, DynBackend, ErrorKind, Invoke, Outcome, Reply, Target, Task, TaskHandle,
    TaskRequest, ToolError,
};

use crate::{
    call::options,
    calls::Kept,
    connections::Checkout,
    fault::request_error,
    line::Line,
    task::{self, State},
};

/// Where a task is. As long as this is there, its connection is not closed for want of calls.
struct Place {
    id: Arc<str>,
    server: String,
    line: Arc<Line>,
    /// The connection that a legacy server has made the task on: on another one, the id may be somebody else's.
    connection: Connection,
    _kept: Kept,
}

/// A task that a call has become, from what the server says of it.
pub(crate) fn keep(server: &str, checkout: &Checkout, task: &RawJson, answer: RawJson) -> Option<TaskHandle> {
    let id: Arc<str> = task::id(task)?.string()?.into();
    // It may ask at any time, when its call is long over.
    drop(checkout.open());
    let place = Place {
        id: Arc::clone(&id),
        server: server.to_owned(),
        line: checkout.line().clone(),
        connection: checkout.connection.clone(),
        _kept: checkout.line().calls.keep(),
    };
    let runner: Arc<dyn DynBackend> = Arc::new(place);
    checkout.line().calls.addressees.follow(&id, &runner);
    Some(TaskHandle {
        task: Task { id, runner },
        state: answer,
        result: None,
    })
}

impl Drop for Place {
    fn drop(&mut self) {
        self.line.calls.addressees.forget(&self.id);
    }
}

impl Invoke for Place {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let Target::Task { task, request, .. } = &cx.target else {
            let message = "a task can only be asked how it is";
            return Err(ToolError::new(ErrorKind::Internal, message));
        };
        let era = self.connection.server().era();
        let params = task::params(&RawJson::from(&*task.id));
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
                let message = format!("the tasks of the server `{}` know no such request", self.server);
                return Err(ToolError::new(ErrorKind::Unavailable, message));
            }
        };
        let answer = self.request(cx, era, method, params).await?;
        if answer.kind() != JsonKind::Object {
            let message = format!("the server `{}` answered with no object", self.server);
            return Err(ToolError::new(ErrorKind::Protocol, message));
        }
        if *request == TaskRequest::Result {
            return Ok(reply(answer).into());
        }
        let is_done = *request == TaskRequest::Get && State::read(&answer).status == "completed";
        let result = answer
            .get("result")
            .filter(|result| is_done && era == Era::Modern && result.kind() == JsonKind::Object);
        Ok(Outcome::Task(Box::new(TaskHandle {
            task: task.clone(),
            state: answer,
            result: result.map(reply),
        })))
    }
}

impl Backend for Place {
    fn protocol(&self) -> Option<&'static str> {
        Some("mcp")
    }
}

impl Place {
    async fn request(
        &self,
        cx: &CallContext,
        era: Era,
        method: &str,
        params: RawJson,
    ) -> Result<RawJson, ToolError> {
        let seat = self.line.calls.begin(cx);
        let mut options = options(cx);
        options.on_progress = None;
        let connection = match era {
            Era::Legacy => self.connection.clone(),
            Era::Modern => {
                task::declare(&mut options);
                let connection = self.line.ready(&seat.call).await;
                connection.map_err(|error| request_error(&self.server, error))?
            }
        };
        let answer = self
            .line
            .request(&connection, &seat, (method, params.into()), options);
        answer.await.map_err(|error| match error.kind() {
            Fault::Closed(_) => {
                let message = format!(
                    "the connection to the server `{}` that the task was made on is gone",
                    self.server
                );
                // And the task with it: no other request finds it again.
                ToolError::new(ErrorKind::NotFound, message).with_source(error)
            }
            _ => request_error(&self.server, error),
        })
    }
}

fn reply(result: RawJson) -> Reply {
    let is_error = result.get("isError").is_some_and(|flag| flag.as_str() == "true");
    Reply::result(result, is_error)
}
