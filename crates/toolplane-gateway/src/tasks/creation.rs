//! Calls that become tasks.

use std::sync::Arc;

use mcp_server::Answer;
use mcp_wire::{Era, RpcError, code};
use toolplane::{
    CallRequest,
    core::{TaskHandle, TaskMode, TaskRequest},
};

use super::{
    state::{lifetime, outward_task, too_many_tasks},
    store::Owner,
};
use crate::{render::Failure, requests::IncomingRequest};

impl IncomingRequest<'_> {
    /// Checks that the call can be run as the task that its legacy client requests.
    pub(crate) async fn requested_task(&self) -> Result<Option<TaskMode>, Failure> {
        let (gateway, cx) = (self.gateway, self.cx);
        let name = self.name();
        let caller = gateway.caller(cx.principal());
        // An unknown tool is reported by the call itself.
        if let Ok(tool) = gateway.plane.tool(&name, &caller).await {
            let support = tool.definition().get("execution");
            let support = support.and_then(|execution| execution.get("taskSupport")?.string());
            if !matches!(support.as_deref(), Some("optional" | "required")) {
                let message = format!("the tool `{name}` does not support tasks");
                return Err(RpcError::new(code::METHOD_NOT_FOUND, message).into());
            }
        }
        if !gateway.tasks.has_room(&Owner::from_request(cx)) {
            return Err(too_many_tasks().into());
        }
        Ok(cx.task().cloned().map(TaskMode::Requested))
    }

    /// Returns [`TaskMode::Allowed`] if the client allows that its call becomes a task, and there is room for one.
    pub(crate) fn allowed_task(&self) -> Option<TaskMode> {
        let is_allowed =
            self.shape.allows_task() && self.gateway.tasks.has_room(&Owner::from_request(self.cx));
        is_allowed.then_some(TaskMode::Allowed)
    }

    /// Answers a call that has become a task.
    pub(crate) fn task_created(&self, handle: TaskHandle) -> Result<Answer, RpcError> {
        let cx = self.cx;
        let tool: Arc<str> = self.name().into();
        let TaskHandle { task, state, .. } = handle;
        let described = match cx.era() {
            Era::Legacy => state.get("task").unwrap_or_default(),
            Era::Modern => state.clone(),
        };
        let lifetime = lifetime(&described);
        let tasks = &self.gateway.tasks;
        let inserted = tasks.insert(Owner::from_request(cx), Arc::clone(&tool), task.clone(), lifetime);
        let Some(id) = inserted else {
            self.cancel(CallRequest::task(tool, task, TaskRequest::Cancel));
            return Err(too_many_tasks());
        };
        let outward = outward_task(&described, &id);
        tasks.record(&id, &outward, lifetime);
        Ok(Answer::verbatim(match cx.era() {
            Era::Legacy => state.with_members(&[("task", outward)]).expect("it has a task"),
            Era::Modern => outward,
        }))
    }

    /// Cancels a task that there is no room for, in the background.
    fn cancel(&self, call: CallRequest) {
        let call = self.gateway.attribute(call, self.cx);
        let plane = self.gateway.plane.clone();
        tokio::spawn(async move {
            if let Err(error) = plane.call(call).await {
                tracing::debug!(%error, "failed to cancel a task that there is no room for");
            }
        });
    }
}
