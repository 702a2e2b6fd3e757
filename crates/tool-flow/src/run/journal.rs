//! Journal of a run: what its steps returned, saved while it runs, so that another process can continue it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use raw_json::RawJson;
use tokio::sync::Notify;
use tool_core::{FlowPhase, FlowRun, Flows, FlowsError};

/// Journal of one run.
pub(crate) struct Journal {
    flows: Arc<dyn Flows>,
    id: Arc<str>,
    key: [u8; 32],
    /// `true` if the storage has the run, as running.
    is_stored: AtomicBool,
    endings: Arc<Endings>,
}

impl Journal {
    /// Creates the journal of a run with this id, which the storage may have already.
    pub(crate) fn new(
        flows: &Arc<dyn Flows>,
        endings: &Arc<Endings>,
        (id, key): (Arc<str>, [u8; 32]),
        is_stored: bool,
    ) -> Self {
        Self {
            flows: flows.clone(),
            id,
            key,
            is_stored: AtomicBool::new(is_stored),
            endings: endings.clone(),
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Returns `true` if the run outlives the process.
    pub(crate) fn is_durable(&self) -> bool {
        self.flows.is_durable()
    }

    /// Saves the entry of a step, if the run outlives the process.
    pub(crate) async fn save(&self, step: &str, entry: RawJson) -> Result<(), FlowsError> {
        if !self.is_durable() {
            return Ok(());
        }
        // Before the row is written: whoever drops this future keeps it.
        self.is_stored.store(true, Ordering::Release);
        let run = FlowRun::new(self.id.clone(), self.key).with_steps(vec![(step.to_owned(), entry)]);
        self.flows.save(run, FlowPhase::Running).await
    }

    /// Keeps the run until a call continues it. The entries are those of all steps that have ended.
    pub(crate) async fn wait(&self, steps: Vec<(String, RawJson)>) -> Result<(), FlowsError> {
        let steps = if self.is_durable() { Vec::new() } else { steps };
        let run = FlowRun::new(self.id.clone(), self.key).with_steps(steps);
        self.flows.save(run, FlowPhase::Waiting).await?;
        self.is_stored.store(false, Ordering::Release);
        Ok(())
    }

    /// Deletes the run, which has ended.
    pub(crate) async fn end(&self) {
        if self.is_stored.swap(false, Ordering::AcqRel)
            && let Err(error) = self.flows.end(&self.id).await
        {
            tracing::warn!(%error, run = %self.id, "a workflow that has ended stays in the store");
        }
    }
}

impl Drop for Journal {
    /// Keeps a run whose future was dropped, as a call that was cancelled or had no more time: the same call continues it.
    fn drop(&mut self) {
        if !self.is_stored.swap(false, Ordering::AcqRel) {
            return;
        }
        // Without a runtime the process ends, and its lease with it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let ending = Ending::begin(&self.endings, self.key);
        let flows = self.flows.clone();
        let run = FlowRun::new(self.id.clone(), self.key);
        runtime.spawn(async move {
            let id = run.id.clone();
            if let Err(error) = flows.save(run, FlowPhase::Waiting).await {
                tracing::warn!(%error, run = %id, "a workflow that was cancelled stays in the store as running");
            }
            drop(ending);
        });
    }
}

/// Runs whose futures were dropped, and that are not saved yet.
#[derive(Default)]
pub(crate) struct Endings {
    keys: Mutex<Vec<[u8; 32]>>,
    changed: Notify,
}

impl Endings {
    /// Waits until no run of this key is being saved.
    pub(crate) async fn settled(&self, key: &[u8; 32]) {
        loop {
            let changed = self.changed.notified();
            if !self.keys.lock().contains(key) {
                return;
            }
            changed.await;
        }
    }
}

/// Guard of a run that is being saved.
struct Ending {
    endings: Arc<Endings>,
    key: [u8; 32],
}

impl Ending {
    fn begin(endings: &Arc<Endings>, key: [u8; 32]) -> Self {
        endings.keys.lock().push(key);
        Self {
            endings: endings.clone(),
            key,
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let mut keys = self.endings.keys.lock();
        if let Some(index) = keys.iter().position(|key| *key == self.key) {
            keys.swap_remove(index);
        }
        drop(keys);
        self.endings.changed.notify_waiters();
    }
}
