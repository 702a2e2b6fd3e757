use std::{borrow::Cow, sync::Arc};

use mcp_server::{Answer, RequestContext};
use mcp_wire::{Era, RpcError, code, meta, meta_key, with_meta};
use raw_json::RawJson;
use tokio::time::sleep;
use toolplane::{
    CallRequest,
    core::{
        Ask, AskError, BoxFuture, ClientKey, ErrorKind, Outcome, Question, Reply, TaskHandle, TaskRequest,
        ToolError,
    },
};

use super::{
    state::{missing_state, poll_interval, record_state, status, unknown_task, with_result},
    store::{Owner, TaskRecord},
};
use crate::{
    client::{ClientChannel, parse_question},
    gateway::GatewayState,
    render::{failure_reply, rpc_error, task_result},
};

/// A task that a request of its client is about.
pub(super) struct ClientTask<'a> {
    pub(super) gateway: &'a GatewayState,
    pub(super) cx: &'a RequestContext,
    pub(super) id: String,
    pub(super) record: TaskRecord,
}

impl<'a> ClientTask<'a> {
    /// Returns the task whose `taskId` a request has, if it belongs to the client.
    pub(super) fn from_request(gateway: &'a GatewayState, cx: &'a RequestContext) -> Result<Self, RpcError> {
        let id = cx.task_id().map(Cow::into_owned);
        let id = id.ok_or_else(|| RpcError::new(code::INVALID_PARAMS, "`taskId` must be a string"))?;
        let record = gateway.tasks.get(&id, &Owner::from_request(cx));
        Ok(Self {
            gateway,
            cx,
            record: record.ok_or_else(unknown_task)?,
            id,
        })
    }

    /// Sends a request about the task to its server.
    async fn call(&self, request: TaskRequest) -> Result<Outcome, ToolError> {
        let record = &self.record;
        let call = CallRequest::task(Arc::clone(&record.tool), record.task.clone(), request);
        let mut call = self.gateway.attribute(call, self.cx);
        if self.cx.era() == Era::Legacy
            && let Some(ask) = ClientChannel::open(self.cx)
        {
            let id = self.id.clone();
            call = call.ask(Arc::new(TaskChannel { ask, id }));
        }
        self.gateway.plane.call(call).await
    }

    /// Sends a request about the task to its server, and returns the task that the answer describes.
    pub(super) async fn handle(&self, request: TaskRequest) -> Result<TaskHandle, ToolError> {
        match self.call(request).await? {
            Outcome::Task(handle) => Ok(*handle),
            _ => Err(missing_state()),
        }
    }

    /// Returns the state of the task after a request about it.
    pub(super) async fn state(&self, request: TaskRequest) -> Result<Answer, RpcError> {
        let era = self.cx.era();
        let handle = self.handle(request).await;
        let handle = handle.map_err(|error| rpc_error(&error, era, None))?;
        let questions = handle.state.get("inputRequests").unwrap_or(RawJson::object());
        for (_, question) in questions.members() {
            let question = parse_question(&question);
            let (method, params) = question.map_err(|error| rpc_error(&error, era, None))?;
            self.cx.check_askable(&method, params.as_ref())?;
        }
        let outward = self.record_state(&with_result(&handle, era));
        Ok(match era {
            Era::Legacy => Answer::untyped(outward),
            Era::Modern => Answer::from(outward),
        })
    }

    /// Returns the state of the task as its client sees it, and records it.
    pub(super) fn record_state(&self, state: &RawJson) -> RawJson {
        record_state(&self.gateway.tasks, &self.id, state)
    }

    /// Waits until the task has ended, and returns its result. Questions of the task reach the client in the meantime.
    pub(super) async fn result(&self) -> Result<Answer, RpcError> {
        let era = self.cx.era();
        loop {
            let handle = self.handle(TaskRequest::Get).await;
            let state = handle.map_err(|error| rpc_error(&error, era, None))?.state;
            self.record_state(&state);
            let waits_for_input = match status(&state).as_deref() {
                Some("working") => {
                    sleep(poll_interval(&state)).await;
                    None
                }
                // A legacy task asks its questions while a request for its result is in progress.
                Some("input_required") => Some(true),
                _ => Some(false),
            };
            // The task may have expired in the meantime.
            let owner = Owner::from_request(self.cx);
            self.gateway
                .tasks
                .get(&self.id, &owner)
                .ok_or_else(unknown_task)?;
            let Some(waits_for_input) = waits_for_input else {
                continue;
            };
            return match self.call(TaskRequest::Result).await {
                Ok(Outcome::Reply(reply)) => Ok(self.related_result(&reply)),
                Ok(_) => Err(rpc_error(&missing_state(), era, None)),
                // The task takes longer than a single request may.
                Err(error) if waits_for_input && error.kind() == ErrorKind::Timeout => continue,
                // The same answer as the call itself would have got.
                Err(error) => Ok(self.related_result(&failure_reply(&error))),
            };
        }
    }

    /// Returns a result with the id of its task in `_meta`.
    fn related_result(&self, reply: &Reply) -> Answer {
        let result = task_result(reply, self.cx.era());
        let related = [(meta_key::RELATED_TASK, related_task(&self.id))];
        Answer::untyped(with_meta(Some(&result), &related))
    }
}

fn related_task(id: &str) -> RawJson {
    RawJson::from_members(&[("taskId", RawJson::from(id))])
}

/// Channel to a client that waits for the result of a task. Replaces the server's id of the task in questions by ours.
struct TaskChannel {
    ask: Arc<dyn Ask>,
    id: String,
}

impl Ask for TaskChannel {
    fn client(&self) -> ClientKey {
        self.ask.client()
    }

    fn capabilities(&self) -> RawJson {
        self.ask.capabilities()
    }

    fn ask(&self, mut question: Question) -> BoxFuture<'_, Result<RawJson, AskError>> {
        let is_related =
            |params: &&RawJson| meta(params).is_some_and(|meta| meta.get(meta_key::RELATED_TASK).is_some());
        if let Some(params) = question.params.as_ref().filter(is_related) {
            let related = [(meta_key::RELATED_TASK, related_task(&self.id))];
            question.params = Some(with_meta(Some(params), &related));
        }
        self.ask.ask(question)
    }

    fn log_level(&self) -> Option<Arc<str>> {
        self.ask.log_level()
    }

    fn log(&self, message: &RawJson) {
        self.ask.log(message);
    }
}
