//! Journal of a run: what its steps returned, saved while it runs, so that another process can continue it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use raw_json::RawJson;
use tool_core::{FlowPhase, FlowRun, Flows, FlowsError};

/// Journal of one run.
pub(crate) struct Journal {
    flows: Arc<dyn Flows>,
    id: Arc<str>,
    key: [u8; 32],
    /// `true` if the storage has the run.
    is_stored: AtomicBool,
}

impl Journal {
    /// Creates the journal of a run with this id, which the storage may have already.
    pub(crate) fn new(flows: Arc<dyn Flows>, id: Arc<str>, key: [u8; 32], is_stored: bool) -> Self {
        Self {
            flows,
            id,
            key,
            is_stored: AtomicBool::new(is_stored),
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
        // Before the row is written: whoever drops this future deletes it.
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
    /// Deletes a run whose future was dropped: its caller was told that its outcome is unknown.
    fn drop(&mut self) {
        if self.is_stored.swap(false, Ordering::AcqRel)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (flows, id) = (self.flows.clone(), self.id.clone());
            runtime.spawn(async move {
                if let Err(error) = flows.end(&id).await {
                    tracing::warn!(%error, run = %id, "a workflow that was cancelled stays in the store");
                }
            });
        }
    }
}
