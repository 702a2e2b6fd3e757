use std::sync::Arc;

use raw_json::RawJson;

use crate::BoxFuture;

/// Run of a workflow that has begun and not ended, as a storage keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowRun {
    /// Id of the run.
    pub id: Arc<str>,
    /// SHA-256 of what identifies the call: caller, workflow and arguments. A later call with the same one continues the run.
    pub key: [u8; 32],
    /// Entries of its steps, by their paths. Only whoever runs the workflow reads them.
    pub steps: Vec<(String, RawJson)>,
}

impl FlowRun {
    /// Creates a run without steps.
    #[must_use]
    pub fn new(id: impl Into<Arc<str>>, key: [u8; 32]) -> Self {
        Self {
            id: id.into(),
            key,
            steps: Vec::new(),
        }
    }

    /// Sets the entries of steps.
    #[must_use]
    pub fn with_steps(mut self, steps: Vec<(String, RawJson)>) -> Self {
        self.steps = steps;
        self
    }
}

/// Phase of a stored run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlowPhase {
    /// This process runs it.
    Running,
    /// It waits for another call, which may come to any process.
    Waiting,
}

/// Choice of a stored run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlowChoice<'a> {
    /// A run with this key.
    Key([u8; 32]),
    /// The run with this id.
    Id(&'a str),
}

/// Answer to a claim of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlowClaim {
    /// No such run waits or was abandoned. Runs of this process do not count.
    None,
    /// The run belongs to this process now.
    Claimed(FlowRun),
    /// Another process runs it.
    Running,
}

/// Port to the storage of workflows that have begun: what their steps returned, so that none is called twice.
///
/// A run belongs to the process that saved it as running, until that process saves it as waiting, ends it, or dies. How a
/// storage knows that another process has died is its own.
pub trait Flows: Send + Sync {
    /// Returns `true` if runs outlive the process. Steps are then saved one by one, before and after their calls.
    fn is_durable(&self) -> bool;

    /// Claims a run that waits, or whose process has died. Of several claims at once, one succeeds.
    ///
    /// # Errors
    /// If the storage does not work.
    fn claim<'a>(&'a self, choice: FlowChoice<'a>) -> BoxFuture<'a, Result<FlowClaim, FlowsError>>;

    /// Stores these steps of a run, and its phase. Other steps that were stored before stay. A run is kept for a day after it
    /// was last saved.
    ///
    /// # Errors
    /// If the storage does not work, or is full.
    fn save(&self, run: FlowRun, phase: FlowPhase) -> BoxFuture<'_, Result<(), FlowsError>>;

    /// Deletes a run.
    ///
    /// # Errors
    /// If the storage does not work.
    fn end<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), FlowsError>>;
}

/// Error of the storage of workflows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store of workflows does not work: {message}")]
pub struct FlowsError {
    message: String,
}

impl FlowsError {
    /// Creates the error of a storage that does not work.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}
