use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use raw_json::{RawJson, digest, hex};
use serde_json::Value;
use tool_core::{
    Backend, CallContext, Descriptor, DynBackend, ErrorKind, Executor, FlowChoice, FlowClaim, FlowPhase,
    FlowRun, Flows, Invoke, Outcome, Overrides, PendingCall, PrepareError, Reach, Reentry, Resume, ToolError,
};

use crate::{
    StepRetry,
    definition::Definition,
    run::{
        Run,
        journal::{Endings, Journal},
        state::{FlowState, KeptResults, Recorded, Waiting, WaitingFor, recorded},
    },
};

/// Function that makes the settings of a step's retries.
pub type RetryOverrides = Arc<dyn Fn(StepRetry) -> Overrides + Send + Sync>;

/// Executor of kind `workflow`: tools that are made of steps, each a call of another tool through the whole stack.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use tool_core::{Overrides, Reentry, SystemClock};
/// use tool_flow::{MemoryFlows, WorkflowExecutor};
///
/// # fn example(reentry: Arc<dyn Reentry>) {
/// let flows = Arc::new(MemoryFlows::new(Arc::new(SystemClock::new())));
/// let executor = WorkflowExecutor::new(reentry, Arc::new(|_| Overrides::default()), flows);
/// # let _ = executor;
/// # }
/// ```
#[derive(Clone)]
pub struct WorkflowExecutor {
    reentry: Arc<dyn Reentry>,
    retry: RetryOverrides,
    flows: Arc<dyn Flows>,
    endings: Arc<Endings>,
}

/// Workflow, ready to be called.
struct WorkflowBackend {
    definition: Definition,
    /// SHA-256 of the settings, in hexadecimal digits.
    digest: String,
    executor: WorkflowExecutor,
}

impl WorkflowExecutor {
    /// Key in `_meta` of a workflow's result, with the records of its steps.
    pub const META_KEY: &'static str = "dev.toolplane/workflow";
    /// Kind that descriptors name.
    pub const KIND: &'static str = "workflow";

    /// Returns the settings of a workflow; `None` for a tool of another kind.
    #[must_use]
    pub fn settings(descriptor: &Descriptor) -> Option<&Value> {
        let executor = &descriptor.executor;
        (executor.kind == Self::KIND).then_some(&executor.config)
    }

    /// Creates an executor that makes its calls through `reentry`. `retry` makes the settings by which the call of a step with
    /// `retry` is attempted again. `flows` keeps the workflows that wait, and those that run if it outlives the process: see
    /// [`MemoryFlows`](crate::MemoryFlows).
    #[must_use]
    pub fn new(reentry: Arc<dyn Reentry>, retry: RetryOverrides, flows: Arc<dyn Flows>) -> Self {
        Self {
            reentry,
            retry,
            flows,
            endings: Arc::default(),
        }
    }
}

impl Executor for WorkflowExecutor {
    fn kind(&self) -> &str {
        Self::KIND
    }

    fn prepare(&self, descriptor: &Descriptor) -> Result<Arc<dyn DynBackend>, Vec<PrepareError>> {
        let mut definition = Definition::read(&descriptor.executor.config)?;
        if descriptor.origin.awaits_acceptance() {
            definition.steps.forget_declarations();
        }
        Ok(Arc::new(WorkflowBackend {
            definition,
            digest: hex(&digest(&RawJson::from(&descriptor.executor.config))),
            executor: self.clone(),
        }))
    }

    fn calls_tools(&self) -> bool {
        true
    }

    /// A workflow has no secrets. It reaches what its tools reach, each with permissions of its own.
    fn reach(&self, descriptor: &Descriptor) -> Reach {
        let mut reach = Reach::new(Vec::new());
        if let Ok(definition) = Definition::read(&descriptor.executor.config) {
            let mut tools = Vec::new();
            definition.steps.visit(&mut |step| {
                tools.extend(step.calls().map(|call| call.tool.clone()));
            });
            tools.sort();
            tools.dedup();
            for tool in tools {
                reach = reach.with_other(format!("calls the tool `{tool}`"));
            }
        }
        reach
    }

    fn config_schema(&self) -> RawJson {
        crate::schema::config_schema()
    }
}

impl Invoke for WorkflowBackend {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        // Boxed, so that the calls of other tools do not carry the size of its future.
        Box::pin(self.run(cx)).await
    }
}

/// Run that begins, or continues.
struct Begun {
    journal: Journal,
    /// Results of the calls of earlier rounds.
    earlier: BTreeMap<String, Recorded>,
    /// Answers for the step that waits for them.
    answers: Option<(String, Resume)>,
}

impl WorkflowBackend {
    async fn run(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let Some(Begun {
            journal,
            earlier,
            answers,
        }) = self.begin(cx).await?
        else {
            let handle = hex(&cx.continuation_key(&self.digest)[..8]);
            let pending = PendingCall::new(handle, "another gateway runs this workflow for the same call");
            return Ok(Outcome::Pending(Box::new(pending.with_retry_after(RETRY_AFTER))));
        };
        let is_continued = !earlier.is_empty();
        let WorkflowExecutor { reentry, retry, .. } = &self.executor;
        let run = Run::new(&self.definition, &**reentry, retry, &journal, cx).continued(earlier, answers);
        let (Waiting { step, what }, recorded) = match run.run(cx).await.into_outcome() {
            Ok(result) => {
                // Without time it is like a call that was cancelled: the journal keeps it for the same call.
                if result.is_ok() || !cx.has_expired() {
                    journal.end().await;
                }
                return result;
            }
            Err(waiting) => waiting,
        };
        let is_stored = journal.is_durable() || matches!(what, WaitingFor::Decision(_));
        if is_stored {
            let steps = recorded.iter();
            let steps = steps
                .map(|(path, entry)| (path.clone(), entry.to_json()))
                .collect();
            let kept = journal.wait(steps).await;
            kept.map_err(|error| {
                let message = "the workflow waits, and its state cannot be kept";
                cx.mark(ToolError::new(ErrorKind::Overloaded, message).with_source(error))
            })?;
        }
        Ok(match what {
            WaitingFor::Input(mut input) => {
                let recorded = match is_stored {
                    true => KeptResults::Stored(journal.id().to_owned()),
                    false => KeptResults::Here(recorded),
                };
                let waiting = (step, input.state.take());
                let state = FlowState { recorded, waiting };
                let input = (*input).with_state(Some(state.to_json(&self.digest)));
                Outcome::NeedsInput(Box::new(input))
            }
            WaitingFor::Decision(mut pending) => {
                pending.reason = format!("step `{step}`: {}", pending.reason);
                Outcome::Pending(Box::new((*pending).with_begun(cx.may_have_run() || is_continued)))
            }
        })
    }

    /// Begins a run, or continues one that waits or whose process has died. Returns `None` if another process runs it.
    async fn begin(&self, cx: &mut CallContext) -> Result<Option<Begun>, ToolError> {
        let flows = &self.executor.flows;
        let key = cx.continuation_key(&self.digest);
        let resume = cx.extras.resume.take();
        let state = resume.as_ref().map(|resume| {
            let state = resume.state.clone().unwrap_or(RawJson::null());
            FlowState::read(&state, &self.digest)
        });
        let state = state.transpose()?;
        let answers = state
            .as_ref()
            .zip(resume)
            .map(|(state, resume)| state.resume(&resume.responses));
        let choice = match &state {
            None => FlowChoice::Key(key),
            Some(FlowState {
                recorded: KeptResults::Stored(id),
                ..
            }) => FlowChoice::Id(id),
            Some(_) => return self.begun(cx, key, None, state, answers).map(Some),
        };
        self.executor.endings.settled(&key).await;
        let claim = flows.claim(choice).await.map_err(|error| {
            ToolError::new(ErrorKind::Unavailable, "the store of workflows does not answer")
                .with_source(error)
        })?;
        match claim {
            FlowClaim::Claimed(run) if run.key == key => {
                self.begun(cx, key, Some(run), None, answers).map(Some)
            }
            FlowClaim::Claimed(run) => {
                // That of another call: it waits on.
                let kept = flows.save(run, FlowPhase::Waiting).await;
                Err(kept.err().map_or_else(ended, |error| ended().with_source(error)))
            }
            FlowClaim::Running => Ok(None),
            _ if state.is_some() => Err(ended()),
            _ => self.begun(cx, key, None, None, None).map(Some),
        }
    }

    fn begun(
        &self,
        cx: &CallContext,
        key: [u8; 32],
        claimed: Option<FlowRun>,
        state: Option<FlowState>,
        answers: Option<(String, Resume)>,
    ) -> Result<Begun, ToolError> {
        // A run in memory was forgotten with its claim.
        let is_stored = claimed.is_some() && self.executor.flows.is_durable();
        let id = match &claimed {
            Some(run) => run.id.clone(),
            None => cx.correlation_id.to_string().into(),
        };
        let earlier = match (claimed, state.map(|state| state.recorded)) {
            (Some(run), _) => recorded(run.steps).ok_or_else(|| {
                let message = "the stored steps of the workflow cannot be read";
                ToolError::new(ErrorKind::Internal, message)
            })?,
            (None, Some(KeptResults::Here(recorded))) => recorded,
            _ => BTreeMap::new(),
        };
        Ok(Begun {
            journal: Journal::new(&self.executor.flows, &self.executor.endings, (id, key), is_stored),
            earlier,
            answers,
        })
    }
}

/// Returns the error of a state whose run is not there.
fn ended() -> ToolError {
    let message = "the run that the state is for has ended, or another call continues it";
    ToolError::new(ErrorKind::NotFound, message)
}

/// Time after which a call is made again that another process makes.
const RETRY_AFTER: Duration = Duration::from_secs(5);

impl Backend for WorkflowBackend {}

impl fmt::Debug for WorkflowExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkflowExecutor").finish_non_exhaustive()
    }
}
