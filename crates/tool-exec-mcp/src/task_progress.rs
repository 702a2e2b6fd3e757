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

/// What the caller is told of a task's progress: what the server reports as such, and its status messages until it
/// does.
pub(crate) struct TaskReports<'a> {
    progress: &'a dyn Progress,
    state: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    n_messages: u64,
    last_message: Option<RawJson>,
    has_reported: bool,
}

impl<'a> TaskReports<'a> {
    pub(crate) fn new(progress: &'a dyn Progress) -> Self {
        Self {
            progress,
            state: Mutex::default(),
        }
    }

    /// Passes a status message on, if it is a new one.
    pub(crate) fn status(&self, message: &RawJson) {
        let mut told = self.told();
        if told.has_reported || told.last_message.as_ref() == Some(message) {
            return;
        }
        told.n_messages += 1;
        told.last_message = Some(message.clone());
        let report = [
            ("progress", RawJson::from(told.n_messages)),
            ("message", message.clone()),
        ];
        self.progress.report(RawJson::from_members(&report));
    }

    /// Passes on what the server reports.
    fn report(&self, report: RawJson) {
        self.told().has_reported = true;
        self.progress.report(report);
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.state.lock()
    }
}

/// Listens for the progress of a task. Its token outlives the request that made the task, so it is none of the tokens
/// that the connection gives its requests.
pub(crate) struct Telling {
    pub(crate) token: RawJson,
    events: EventReceiver,
}

impl Telling {
    pub(crate) fn new(connection: &Connection) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        Self {
            token: RawJson::from(format!("task-{n}").as_str()),
            events: connection.events(),
        }
    }

    /// Passes on what the server reports, as long as it is awaited.
    pub(crate) async fn pass_on(&mut self, reports: &TaskReports<'_>) -> Infallible {
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
