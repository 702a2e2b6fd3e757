//! Tasks that modern clients watch: looked at as often as their servers want it, and told of whenever they have changed.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use mcp_server::{ClientHandle, RequestContext};
use raw_json::RawJson;
use tokio::time::{sleep, timeout};
use toolplane::{
    CallRequest, Toolplane,
    core::{Caller, ClientCapabilities, ClientKey, Outcome, TaskRequest},
};

use crate::{
    Gateway, client,
    legacy::question,
    task_requests::{pause, shown},
    tasks::{Known, Owner, Tasks},
    watches::Watches,
};

/// How long a subscription may take from its beginning to its acknowledgement.
const GRACE: Duration = Duration::from_secs(30);
/// How often is looked whether it is acknowledged.
const LOOK: Duration = Duration::from_millis(20);
/// How long a task that cannot be looked at is left alone.
const LEFT_ALONE: Duration = Duration::from_secs(5);

/// Follows a task for a client that asks to be told of it. Returns whether it is the client's.
///
/// Servers need not tell of their tasks, and what one tells while its stream is opened anew is lost: so the task is
/// looked at, as its owner would do it.
pub(crate) fn follow(gateway: &Gateway, id: &str, cx: &RequestContext) -> bool {
    let Some(known) = gateway.tasks().get(id, &Owner::of(cx)) else {
        return false;
    };
    let following = Following {
        plane: gateway.plane().clone(),
        tasks: Arc::downgrade(gateway.tasks()),
        watches: Arc::clone(gateway.watches()),
        caller: gateway.caller(cx.principal()),
        client: client::key(cx),
        capabilities: client::capabilities(cx),
        handle: cx.client(),
        id: id.to_owned(),
        known,
    };
    gateway.tasks().follow(id, tokio::spawn(following.run()));
    true
}

struct Following {
    plane: Toolplane,
    /// What this is kept in.
    tasks: Weak<Tasks>,
    watches: Arc<Watches>,
    caller: Arc<Caller>,
    client: ClientKey,
    capabilities: ClientCapabilities,
    handle: ClientHandle,
    id: String,
    known: Known,
}

impl Following {
    /// Looks at the task until it is over, or nobody watches it any more.
    async fn run(self) {
        let acknowledged = async {
            while !self.is_watched() {
                sleep(LOOK).await;
            }
        };
        if timeout(GRACE, acknowledged).await.is_err() {
            return;
        }
        let mut told = None;
        while self.is_watched() {
            let Some(state) = self.look().await else {
                sleep(LEFT_ALONE).await;
                continue;
            };
            let Some(tasks) = self.tasks.upgrade() else { return };
            let shown = shown(&tasks, &self.id, &state);
            drop(tasks);
            if told.as_ref() != Some(&shown) {
                self.tell(&shown);
                told = Some(shown);
            }
            let status = state.get("status").and_then(|status| status.string());
            if !matches!(status.as_deref(), Some("working" | "input_required")) {
                return;
            }
            sleep(pause(&state)).await;
        }
    }

    fn is_watched(&self) -> bool {
        self.watches.is_task_watched(&self.id)
    }

    /// How the task is; nothing when that cannot be told.
    async fn look(&self) -> Option<RawJson> {
        let (tool, task) = (Arc::clone(&self.known.tool), self.known.task.clone());
        let call = CallRequest::task(tool, task, TaskRequest::Get)
            .caller(Arc::clone(&self.caller))
            .client(self.client.clone())
            .client_capabilities(self.capabilities);
        match self.plane.call(call).await {
            Ok(Outcome::Task(handle)) => Some(handle.state).filter(|state| state.get("taskId").is_some()),
            Ok(_) => None,
            Err(error) => {
                tracing::debug!(%error, "a task that is watched cannot be looked at");
                None
            }
        }
    }

    /// Tells of the task, unless it asks for what the client did not declare: that it is told when it asks itself.
    fn tell(&self, shown: &RawJson) {
        let asked = shown.get("inputRequests").unwrap_or(RawJson::object());
        let can_ask = |request: RawJson| {
            let (method, params) = question(&request).ok()?;
            self.handle.check_askable(&method, params.as_ref()).ok()
        };
        if asked.members().all(|(_, request)| can_ask(request).is_some()) {
            let state = shown.without_members(&["resultType"]);
            self.watches
                .tell_task(&state.expect("what has an id is an object"));
        }
    }
}
