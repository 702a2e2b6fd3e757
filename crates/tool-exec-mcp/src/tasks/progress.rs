use std::{
    convert::Infallible,
    future::pending,
    sync::atomic::{AtomicU64, Ordering},
};

use mcp_client::{Connection, EventReceiver};
use mcp_wire::{meta_key, method};
use parking_lot::{Mutex, MutexGuard};
use raw_json::RawJson;
use tool_core::Progress;

/// Progress reports of a task for the caller: the server's own reports, and its status messages until there are any.
pub(crate) struct TaskProgress<'a> {
    progress: &'a dyn Progress,
    state: Mutex<Reported>,
}

#[derive(Default)]
struct Reported {
    n_messages: u64,
    last_message: Option<RawJson>,
    has_reported: bool,
}

impl<'a> TaskProgress<'a> {
    pub(crate) fn new(progress: &'a dyn Progress) -> Self {
        Self {
            progress,
            state: Mutex::default(),
        }
    }

    /// Reports a status message, if it is a new one.
    pub(crate) fn status(&self, message: &RawJson) {
        let mut reported = self.reported();
        if reported.has_reported || reported.last_message.as_ref() == Some(message) {
            return;
        }
        reported.n_messages += 1;
        reported.last_message = Some(message.clone());
        let report = [
            ("progress", RawJson::from(reported.n_messages)),
            ("message", message.clone()),
        ];
        self.progress.report(RawJson::from_members(&report));
    }

    /// Forwards a report of the server.
    fn report(&self, report: RawJson) {
        self.reported().has_reported = true;
        self.progress.report(report);
    }

    fn reported(&self) -> MutexGuard<'_, Reported> {
        self.state.lock()
    }
}

/// Receives the progress of a task. The task's token outlives the request that created the task, so it differs from all
/// tokens that the connection gives its requests.
pub(crate) struct ProgressListener {
    pub(crate) token: RawJson,
    events: EventReceiver,
}

impl ProgressListener {
    pub(crate) fn new(connection: &Connection) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        Self {
            token: RawJson::from(format!("task-{n}").as_str()),
            events: connection.events(),
        }
    }

    /// Forwards reports of the server for as long as it is polled.
    pub(crate) async fn forward(&mut self, reports: &TaskProgress<'_>) -> Infallible {
        while let Some(event) = self.events.next().await {
            let params = event.params.filter(|_| event.method == method::PROGRESS);
            if let Some(params) = params
                && params.get(meta_key::PROGRESS_TOKEN).as_ref() == Some(&self.token)
            {
                reports.report(params);
            }
        }
        pending().await
    }
}
