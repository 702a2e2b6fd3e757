use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use raw_json::{RawJson, digest, hex};
use serde_json::Value;
use tool_core::{
    Backend, CallContext, Descriptor, DynBackend, ErrorKind, Executor, Invoke, Outcome, Overrides,
    PrepareError, Reach, Reentry, ToolError,
};

use crate::{
    StepRetry,
    definition::Definition,
    run::{
        Run,
        state::{FlowState, Waiting, WaitingFor},
    },
    waiting::WaitingFlows,
};

/// Function that makes the settings of a step's retries.
pub type RetryOverrides = Arc<dyn Fn(StepRetry) -> Overrides + Send + Sync>;

/// Executor of kind `workflow`: tools that are made of steps, each a call of another tool through the whole stack.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use tool_core::{Overrides, Reentry};
/// use tool_flow::WorkflowExecutor;
///
/// # fn example(reentry: Arc<dyn Reentry>) {
/// let executor = WorkflowExecutor::new(reentry, Arc::new(|_| Overrides::default()));
/// # let _ = executor;
/// # }
/// ```
#[derive(Clone)]
pub struct WorkflowExecutor {
    reentry: Arc<dyn Reentry>,
    retry: RetryOverrides,
    waiting: Arc<Mutex<WaitingFlows>>,
}

/// Workflow, ready to be called.
struct WorkflowBackend {
    definition: Definition,
    /// SHA-256 of the settings, in hexadecimal digits.
    digest: String,
    executor: WorkflowExecutor,
}

impl WorkflowExecutor {
    /// Kind that descriptors name.
    pub const KIND: &'static str = "workflow";

    /// Returns the settings of a workflow; `None` for a tool of another kind.
    #[must_use]
    pub fn settings(descriptor: &Descriptor) -> Option<&Value> {
        let executor = &descriptor.executor;
        (executor.kind == Self::KIND).then_some(&executor.config)
    }

    /// Creates an executor that makes its calls through `reentry`. `retry` makes the settings by which the call of a step with
    /// `retry` is attempted again.
    #[must_use]
    pub fn new(reentry: Arc<dyn Reentry>, retry: RetryOverrides) -> Self {
        Self {
            reentry,
            retry,
            waiting: Arc::default(),
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
        let WorkflowExecutor {
            reentry,
            retry,
            waiting,
        } = &self.executor;
        let digest = &*self.digest;
        let key = WaitingFlows::key(cx, digest);
        let now = cx.clock.now();
        let resume = cx.extras.resume.take();
        let mut state = match &resume {
            Some(resume) => Some(FlowState::read(
                resume.state.as_ref().unwrap_or(&RawJson::null()),
                digest,
            )?),
            None => waiting.lock().take(&key, now),
        };
        let answers = match (&mut state, &resume) {
            (Some(state), Some(resume)) => state.resume(&resume.responses),
            _ => None,
        };
        let earlier = state.map(|state| state.recorded).unwrap_or_default();
        let run = Run::new(&self.definition, &**reentry, retry, cx).continued(earlier, answers);
        // Boxed, so that the calls of other tools do not carry the size of its future.
        let (Waiting { step, what }, recorded) = match Box::pin(run.run(cx)).await.into_outcome() {
            Ok(result) => return result,
            Err(waiting) => waiting,
        };
        match what {
            WaitingFor::Input(input) => {
                let mut input = *input;
                let state = FlowState {
                    recorded,
                    waiting: Some((step, input.state.take())),
                };
                Ok(Outcome::NeedsInput(Box::new(
                    input.with_state(Some(state.to_json(digest))),
                )))
            }
            WaitingFor::Decision(mut pending) => {
                pending.reason = format!("step `{step}`: {}", pending.reason);
                let state = FlowState {
                    recorded,
                    waiting: None,
                };
                if !waiting.lock().put(key, state, cx.clock.now()) {
                    let message = "too many workflows wait for decisions; this one is not kept";
                    return Err(cx.mark(ToolError::new(ErrorKind::Overloaded, message)));
                }
                Ok(Outcome::Pending(pending))
            }
        }
    }
}

impl Backend for WorkflowBackend {}

impl fmt::Debug for WorkflowExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkflowExecutor").finish_non_exhaustive()
    }
}
