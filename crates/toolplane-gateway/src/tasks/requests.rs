//! Requests of the methods `tasks/*`.

use std::time::Duration;

use futures_util::future::join_all;
use mcp_server::{Answer, RequestContext, unknown_method};
use mcp_wire::{Era, Request, Revision, RpcError, code, extension, method};
use raw_json::{JsonKind, RawJson};
use tokio::time::timeout;
use toolplane::core::TaskRequest;

use super::{client_task::ClientTask, store::Owner};
use crate::gateway::GatewayState;

/// Number of tasks on one page of the list.
const PAGE_SIZE: usize = 32;
/// Time that a server has to describe one task of the list.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);
/// Prefix of a cursor of the list, in front of the number of the last task of the page before.
const CURSOR: &str = "after.";

/// A request of one of the methods `tasks/*`.
#[derive(Clone, Copy)]
pub(crate) struct TaskMethodRequest<'a> {
    pub(crate) gateway: &'a GatewayState,
    pub(crate) request: &'a Request,
    pub(crate) cx: &'a RequestContext,
}

impl<'a> TaskMethodRequest<'a> {
    /// Answers the request.
    pub(crate) async fn answer(self) -> Result<Answer, RpcError> {
        let cx = self.cx;
        let task = match (cx.era(), &*self.request.method) {
            (Era::Modern, method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL) => {
                cx.check_extension(extension::TASKS)?;
                self.task()?
            }
            (Era::Legacy, _) if cx.revision() != Revision::V2025_11_25 => {
                return Err(unknown_method(&self.request.method));
            }
            // No list where clients cannot be told apart, as the specification demands. Who created a task knows its id, and
            // nobody else can guess it.
            (Era::Legacy, method::TASKS_LIST) if cx.connection().is_some() => return self.list().await,
            (Era::Legacy, method::TASKS_GET | method::TASKS_RESULT | method::TASKS_CANCEL) => self.task()?,
            _ => return Err(unknown_method(&self.request.method)),
        };
        match &*self.request.method {
            method::TASKS_GET => task.state(TaskRequest::Get).await,
            method::TASKS_CANCEL => task.state(TaskRequest::Cancel).await,
            method::TASKS_RESULT => task.result().await,
            _ => {
                let responses = cx.input_responses().ok_or_else(|| {
                    RpcError::new(code::INVALID_PARAMS, "`inputResponses` must be an object")
                })?;
                task.state(TaskRequest::Update(responses.clone())).await
            }
        }
    }

    /// Returns the task that the request names.
    fn task(self) -> Result<ClientTask<'a>, RpcError> {
        ClientTask::from_request(self.gateway, self.cx)
    }

    /// Lists the client's tasks in their present state, or in the last known state if a server does not answer.
    async fn list(self) -> Result<Answer, RpcError> {
        let Self { gateway, cx, .. } = self;
        let mut own = gateway.tasks.list(&Owner::from_request(cx), self.start()?);
        let has_more = own.len() > PAGE_SIZE;
        own.truncate(PAGE_SIZE);
        let last = own.last().map(|(_, record)| record.number);
        let states = own.into_iter().map(|(id, record)| async move {
            let last_state = record.state.clone();
            let task = ClientTask {
                gateway,
                cx,
                id,
                record,
            };
            match timeout(LIST_TIMEOUT, task.handle(TaskRequest::Get)).await {
                Ok(Ok(handle)) => Some(task.record_state(&handle.state)),
                _ => last_state,
            }
        });
        let tasks: Vec<RawJson> = join_all(states).await.into_iter().flatten().collect();
        let tasks = RawJson::from_serialize(&tasks).expect("a list of JSON is JSON");
        let mut members = vec![("tasks", tasks)];
        if let Some(last) = last.filter(|_| has_more) {
            members.push(("nextCursor", RawJson::from(&*format!("{CURSOR}{last}"))));
        }
        Ok(Answer::untyped(RawJson::from_members(&members)))
    }

    /// Returns the number of the task after which the requested page begins.
    fn start(self) -> Result<u64, RpcError> {
        let params = self.request.params.as_ref();
        let cursor = params.and_then(|params| params.get("cursor"));
        let Some(cursor) = cursor.filter(|cursor| cursor.kind() != JsonKind::Null) else {
            return Ok(0);
        };
        cursor
            .string()
            .and_then(|cursor| cursor.strip_prefix(CURSOR)?.parse().ok())
            .ok_or_else(|| RpcError::new(code::INVALID_PARAMS, "unknown `cursor`"))
    }
}
