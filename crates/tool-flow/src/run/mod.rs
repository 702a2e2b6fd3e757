//! A run of a workflow: its steps as calls, in the order of their dependencies.

mod call;
pub(crate) mod journal;
pub(crate) mod record;
mod scope;
pub(crate) mod state;

use std::{
    collections::BTreeMap,
    sync::Arc,
    sync::atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;
use raw_json::RawJson;
use tokio::sync::Semaphore;
use tool_core::{CallChain, CallContext, Outcome, Reentry, Reply, Resume, ToolError};
use tool_mapping::{MappingValues, Results};

use self::{
    journal::Journal,
    record::{StepRecord, Summary},
    scope::ScopeRun,
    state::{Recorded, Waiting},
};
use crate::{
    RetryOverrides, WorkflowExecutor,
    definition::{Definition, OnError},
};

/// Maximum size of all results of a run, in bytes.
const MAX_BYTES: usize = 64 << 20;

/// Run of a workflow.
pub(crate) struct Run<'a> {
    pub(crate) definition: &'a Definition,
    pub(crate) reentry: &'a dyn Reentry,
    pub(crate) retry: &'a RetryOverrides,
    /// The call of the workflow, as the origin of the calls of its steps.
    base: CallContext,
    chain: Arc<CallChain>,
    input: RawJson,
    permits: Semaphore,
    /// Journal, in which its calls are recorded.
    pub(crate) journal: &'a Journal,
    /// Results of calls that ended in an earlier round.
    earlier: BTreeMap<String, Recorded>,
    /// Answers for the call that waits for them.
    resume: Mutex<Option<(String, Resume)>>,
    n_bytes: AtomicUsize,
    progress: Mutex<Progress>,
}

/// Progress of a run.
#[derive(Default)]
struct Progress {
    records: Vec<StepRecord>,
    /// Number of records that are left out.
    n_omitted: usize,
    /// Results of calls, by the paths of their steps.
    recorded: BTreeMap<String, Recorded>,
    /// Contexts of calls that have ended.
    ended: Vec<CallContext>,
    /// The first call that waits.
    waiting: Option<Waiting>,
    /// The failure that ends the run.
    failure: Option<(String, ToolError)>,
    n_ended: usize,
    is_partial: bool,
    /// Reply of the last outermost step, if it is one call.
    last_reply: Option<Reply>,
}

/// How a run has ended.
pub(crate) enum RunEnd {
    Completed(Box<Reply>),
    Failed(ToolError),
    /// A call waits: for input, or for a decision.
    Waiting(Waiting, BTreeMap<String, Recorded>),
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        definition: &'a Definition,
        reentry: &'a dyn Reentry,
        retry: &'a RetryOverrides,
        journal: &'a Journal,
        cx: &CallContext,
    ) -> Self {
        let name = cx.tool().name().clone();
        Self {
            definition,
            reentry,
            retry,
            base: cx.fork(),
            chain: CallChain::begin(name, cx.called_from.clone(), definition.max_calls),
            input: cx.arguments.raw().clone(),
            permits: Semaphore::new(definition.window),
            journal,
            earlier: BTreeMap::new(),
            resume: Mutex::new(None),
            n_bytes: AtomicUsize::new(0),
            progress: Mutex::default(),
        }
    }

    /// Continues an earlier round: calls that ended then are not made again. `resume` has the answers for the call at this path.
    pub(crate) fn continued(
        mut self,
        earlier: BTreeMap<String, Recorded>,
        resume: Option<(String, Resume)>,
    ) -> Self {
        self.earlier = earlier;
        self.resume = Mutex::new(resume);
        self
    }

    /// Runs the workflow to its end, or until a call waits. Reports its calls to `cx`, also if the future is dropped.
    pub(crate) async fn run(self, cx: &mut CallContext) -> RunEnd {
        let guard = MergeOnDrop { run: self, cx };
        let run = &guard.run;
        let results = Results::default();
        ScopeRun::outermost(run, &results)
            .run(&run.definition.steps)
            .await;
        run.end(&results)
    }

    /// Returns how the run has ended, once no step runs.
    fn end(&self, results: &Results<'_>) -> RunEnd {
        let mut progress = self.progress.lock();
        if let Some((step, error)) = progress.failure.take() {
            let message = format!("step `{step}`: {}", error.message());
            let detail = Summary::failed(&progress.records, progress.n_omitted, &step, error.detail());
            return RunEnd::Failed(error.with_message(message).with_detail(detail));
        }
        if let Some(waiting) = progress.waiting.take() {
            return RunEnd::Waiting(waiting, std::mem::take(&mut progress.recorded));
        }
        let values = MappingValues::new(&self.input, results)
            .with_missing_as_null(self.definition.on_error == OnError::Continue);
        let reply = match &self.definition.output {
            Some(output) => output.make(&values).map(Reply::value),
            None => Ok(progress.last_reply.take().unwrap_or_else(|| {
                let last = self.definition.steps.steps.last();
                let result = last.and_then(|last| results.get(&last.name));
                Reply::value(result.unwrap_or(RawJson::null()))
            })),
        };
        let mut reply = match reply {
            Ok(reply) => reply,
            Err(problem) => {
                let error = call::invalid(format!("the output cannot be made: {problem}"));
                let detail = Summary::failed(&progress.records, progress.n_omitted, "output", None);
                return RunEnd::Failed(error.with_detail(detail));
            }
        };
        if progress.is_partial {
            reply.mark_partial();
        }
        let summary = Summary::completed(&progress.records, progress.n_omitted, progress.is_partial);
        reply.add_meta(WorkflowExecutor::META_KEY, summary);
        RunEnd::Completed(Box::new(reply))
    }

    /// Returns `true` if no further step may begin: one has failed, or waits.
    fn is_stopped(&self) -> bool {
        let progress = self.progress.lock();
        progress.failure.is_some() || progress.waiting.is_some()
    }

    /// Stops the run with the failure of a step, unless it is stopped already.
    fn fail(&self, step: &str, error: ToolError) {
        self.progress
            .lock()
            .failure
            .get_or_insert_with(|| (step.to_owned(), error));
    }

    /// Stops the run since a call waits, unless another one does.
    fn wait(&self, waiting: Waiting) {
        self.progress.lock().waiting.get_or_insert(waiting);
    }

    /// Counts the bytes of a result. Returns `false` if the results are too large.
    fn keep_bytes(&self, n_bytes: usize) -> bool {
        self.n_bytes.fetch_add(n_bytes, Ordering::AcqRel) + n_bytes <= MAX_BYTES
    }

    /// Records that a step has no result and the run goes on.
    fn go_on_without(&self) {
        self.progress.lock().is_partial = true;
    }

    /// Records the end of a step, and reports it as progress.
    fn record(&self, record: StepRecord) {
        let mut progress = self.progress.lock();
        progress.n_ended += 1;
        if let Some(receiver) = &self.base.origin.progress {
            receiver.report(record.progress(progress.n_ended));
        }
        if progress.records.len() < record::MAX_RECORDS {
            progress.records.push(record);
        } else {
            progress.n_omitted += 1;
        }
    }
}

/// Merges the calls of a run into the call of its workflow when it ends or is dropped.
struct MergeOnDrop<'a, 'b> {
    run: Run<'a>,
    cx: &'b mut CallContext,
}

impl Drop for MergeOnDrop<'_, '_> {
    fn drop(&mut self) {
        let mut progress = self.run.progress.lock();
        for ended in progress.ended.drain(..) {
            self.cx.merge_step(ended);
        }
        for record in &progress.records {
            self.cx.explain("workflow", || record.to_string());
        }
    }
}

impl RunEnd {
    /// Returns the outcome of a run that has ended; `Err` with the waiting call otherwise.
    pub(crate) fn into_outcome(
        self,
    ) -> Result<Result<Outcome, ToolError>, (Waiting, BTreeMap<String, Recorded>)> {
        match self {
            Self::Completed(reply) => Ok(Ok((*reply).into())),
            Self::Failed(error) => Ok(Err(error)),
            Self::Waiting(waiting, recorded) => Err((waiting, recorded)),
        }
    }
}
