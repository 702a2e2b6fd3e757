//! Tasks that modern clients watch: their servers are polled, and the clients are notified of every change.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use mcp_server::{ClientHandle, RequestContext};
use mcp_wire::Era;
use raw_json::RawJson;
use tokio::time::{sleep, timeout};
use toolplane::{
    CallRequest, Toolplane,
    core::{Caller, ClientCapabilities, ClientKey, Outcome, TaskRequest},
};

use super::{
    state::{poll_interval, record_state, status, with_result},
    store::{Owner, TaskRecord, TaskStore},
};
use crate::{
    client::{client_key, declared_capabilities, parse_question},
    gateway::GatewayState,
    notifications::Notifiers,
};

/// Time that a subscription may take from its request to its acknowledgement.
const GRACE: Duration = Duration::from_secs(30);
/// Interval of the checks for the acknowledgement.
const ACKNOWLEDGED_INTERVAL: Duration = Duration::from_millis(20);
/// Time until a task that could not be polled is polled again.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Starts to watch a task for a client that subscribes to it. Returns `true` if the task belongs to the client.
///
/// The task is polled on behalf of its owner. Notifications of its server would not suffice: servers need not send any, and
/// those sent while a stream is reopened are lost.
pub(crate) fn watch_task(gateway: &GatewayState, id: &str, cx: &RequestContext) -> bool {
    let Some(record) = gateway.tasks.get(id, &Owner::from_request(cx)) else {
        return false;
    };
    let watcher = TaskWatcher {
        plane: gateway.plane.clone(),
        tasks: Arc::downgrade(&gateway.tasks),
        notifiers: Arc::clone(&gateway.notifiers),
        caller: gateway.caller(cx.principal()),
        client: client_key(cx),
        capabilities: declared_capabilities(cx),
        handle: cx.client(),
        id: id.to_owned(),
        record,
    };
    gateway.tasks.set_watcher(id, tokio::spawn(watcher.run()));
    true
}

/// Polls one task for the clients that are subscribed to it.
struct TaskWatcher {
    plane: Toolplane,
    /// Weak, since the store owns the watcher.
    tasks: Weak<TaskStore>,
    notifiers: Arc<Notifiers>,
    caller: Arc<Caller>,
    client: ClientKey,
    capabilities: ClientCapabilities,
    handle: ClientHandle,
    id: String,
    record: TaskRecord,
}

impl TaskWatcher {
    /// Polls the task until it has ended, or no client is subscribed to it any more.
    async fn run(self) {
        let acknowledged = async {
            while !self.is_watched() {
                sleep(ACKNOWLEDGED_INTERVAL).await;
            }
        };
        if timeout(GRACE, acknowledged).await.is_err() {
            return;
        }
        let mut notified = None;
        while self.is_watched() {
            let Some(state) = self.poll().await else {
                sleep(RETRY_INTERVAL).await;
                continue;
            };
            let Some(tasks) = self.tasks.upgrade() else { return };
            let outward = record_state(&tasks, &self.id, &state);
            drop(tasks);
            if notified.as_ref() != Some(&outward) {
                self.notify(&outward);
                notified = Some(outward);
            }
            if !matches!(status(&state).as_deref(), Some("working" | "input_required")) {
                return;
            }
            sleep(poll_interval(&state)).await;
        }
    }

    fn is_watched(&self) -> bool {
        self.notifiers.is_task_watched(&self.id)
    }

    /// Returns the state of the task, or `None` if its server did not send it.
    async fn poll(&self) -> Option<RawJson> {
        let (tool, task) = (Arc::clone(&self.record.tool), self.record.task.clone());
        let call = CallRequest::task(tool, task, TaskRequest::Get)
            .caller(Arc::clone(&self.caller))
            .client(self.client.clone())
            .client_capabilities(self.capabilities);
        match self.plane.call(call).await {
            Ok(Outcome::Task(handle)) => {
                Some(with_result(&handle, Era::Modern)).filter(|state| state.get("taskId").is_some())
            }
            Ok(_) => None,
            Err(error) => {
                tracing::debug!(%error, "failed to poll a watched task");
                None
            }
        }
    }

    /// Notifies the subscribed clients of the task's state, unless it has a question that the owner did not declare to answer.
    /// Such a state is refused with an error when the owner polls the task itself.
    fn notify(&self, outward: &RawJson) {
        let questions = outward.get("inputRequests").unwrap_or(RawJson::object());
        let can_ask = |question: RawJson| {
            let (method, params) = parse_question(&question).ok()?;
            self.handle.check_askable(&method, params.as_ref()).ok()
        };
        if questions
            .members()
            .all(|(_, question)| can_ask(question).is_some())
        {
            let state = outward.without_members(&["resultType"]);
            self.notifiers
                .task_changed(&state.expect("what has an id is an object"));
        }
    }
}
