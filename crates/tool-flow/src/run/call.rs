//! The call of one step.

use std::{fmt::Display, sync::Arc};

use raw_json::{JsonKind, RawJson};
use sha2::{Digest, Sha256};
use tool_core::{
    Arguments, CallChain, CallContext, CorrelationId, ErrorKind, Instant, Outcome, Reply, ToolError,
};

use super::{
    record::{StepRecord, StepStatus},
    scope::ScopeRun,
    state::{Recorded, Waiting, WaitingFor, running_entry, waiting_entry},
};
use crate::definition::{Step, ToolCall};

/// Maximum length of the text of a failed tool in an error, in characters.
const MAX_TEXT: usize = 2000;

/// End of a call.
pub(super) enum CallEnd {
    Value(RawJson, StepStatus),
    Failed(ToolError),
    /// The run has stopped, or stops since this call waits.
    Stopped,
}

impl ScopeRun<'_> {
    /// Makes the call of a step, unless it ended in an earlier round. `path` identifies it within the run.
    pub(super) async fn call(&self, step: &Step, call: &ToolCall, path: String) -> CallEnd {
        let start = self.base.clock.now();
        let earlier = self.run.earlier.get(&path);
        if let Some(earlier) = earlier.filter(|earlier| !matches!(earlier, Recorded::Running)) {
            let end = match earlier {
                Recorded::Failed(error) => CallEnd::Failed(error.clone()),
                Recorded::Result(value) => CallEnd::Value(value.clone(), StepStatus::Succeeded),
                Recorded::Running => CallEnd::Stopped,
            };
            self.keep(&path, earlier.clone());
            self.record(path, call, StepStatus::Earlier, 0, start, None);
            return end;
        }
        let arguments = match self.arguments(step, call) {
            Ok(arguments) => arguments,
            Err(error) => return self.failed(path, call, 0, start, error),
        };
        let _permit = self.run.permits.acquire().await;
        if self.is_stopped() {
            return CallEnd::Stopped;
        }
        let mut own = match self.context(step, call, &path, arguments).await {
            Ok(own) => own,
            Err(error) => return self.failed(path, call, 0, start, error),
        };
        if !step.repeatable
            && !own.may_run_twice()
            && let Err(error) = self.begin(&path, earlier.is_some()).await
        {
            return self.failed(path, call, 0, start, error);
        }
        let result = self.run.reentry.call(&mut own).await;
        let attempts = own.n_begun();
        let end = outcome(&own, result);
        self.run.progress.lock().ended.push(own);
        let entry = match &end {
            Ok(reply) => Recorded::Result(value_of(reply)).to_json(),
            // It failed for the time of the whole call, which says nothing about the step.
            Err(NoReply::Error(error)) if self.run.base.has_expired() && !error.may_have_run() => {
                waiting_entry()
            }
            Err(NoReply::Error(error)) => Recorded::Failed(error.clone()).to_json(),
            Err(NoReply::Waiting(_)) => waiting_entry(),
        };
        if let Err(error) = self.run.journal.save(&path, entry).await {
            // After a crash it would be unknown what the tool did, and nothing would repeat it.
            tracing::warn!(%error, step = path, "the result of a step of a workflow is not stored");
        }
        match end {
            Ok(reply) => {
                let value = value_of(&reply);
                if !self.run.keep_bytes(value.len()) {
                    let message = "the results of the workflow's steps are too large together";
                    let error = ToolError::new(ErrorKind::ResultTooLarge, message);
                    return self.failed(path, call, attempts, start, error);
                }
                self.keep(&path, Recorded::Result(value.clone()));
                if self.is_last(step) {
                    self.run.progress.lock().last_reply = Some(reply);
                }
                let status = if path.ends_with(FALLBACK) {
                    StepStatus::FellBack
                } else {
                    StepStatus::Succeeded
                };
                self.record(path, call, status, attempts, start, None);
                CallEnd::Value(value, status)
            }
            Err(NoReply::Error(error)) => {
                self.keep(&path, Recorded::Failed(error.clone()));
                self.failed(path, call, attempts, start, error)
            }
            Err(NoReply::Waiting(what)) => {
                self.record(path.clone(), call, StepStatus::Waiting, attempts, start, None);
                self.run.wait(Waiting { step: path, what });
                CallEnd::Stopped
            }
        }
    }

    /// Records that a call begins that must not be made twice. `has_begun` is `true` if an earlier process made it already.
    async fn begin(&self, path: &str, has_begun: bool) -> Result<(), ToolError> {
        if has_begun {
            let message = "the gateway ended while the tool ran; whether it had its effect is not known";
            return Err(ToolError::new(ErrorKind::OutcomeUnknown, message).with_may_have_run());
        }
        let saved = self.run.journal.save(path, running_entry()).await;
        saved.map_err(|error| {
            let message = "the call cannot be recorded, so it is not made";
            ToolError::new(ErrorKind::Unavailable, message).with_source(error)
        })
    }

    /// Keeps the result of a call for the next round.
    fn keep(&self, path: &str, recorded: Recorded) {
        let mut progress = self.run.progress.lock();
        progress.recorded.insert(path.to_owned(), recorded);
    }

    /// Returns the arguments of a call.
    fn arguments(&self, step: &Step, call: &ToolCall) -> Result<Arc<Arguments>, ToolError> {
        let Some(input) = &call.input else {
            return Ok(self.base.arguments.clone());
        };
        let value = input
            .make(&self.values())
            .map_err(|problem| self.unusable(step, problem))?;
        Arguments::from_raw(value).map(Arc::new)
    }

    /// Returns the context of a call, once its tool is found.
    async fn context(
        &self,
        step: &Step,
        call: &ToolCall,
        path: &str,
        arguments: Arc<Arguments>,
    ) -> Result<CallContext, ToolError> {
        let chain = &self.run.chain;
        let tool = self.run.reentry.find(&call.tool, self.base).await?;
        if chain.tools().any(|outer| outer == tool.name()) {
            return Err(refused(format!("`{}` would call itself", tool.name())));
        }
        if chain.tools().count() > CallChain::MAX_DEPTH {
            return Err(refused(format!(
                "workflows are nested deeper than {} levels",
                CallChain::MAX_DEPTH
            )));
        }
        if !chain.take_call() {
            let max_calls = self.run.definition.max_calls;
            return Err(refused(format!(
                "the workflow makes more calls than `max_calls` of the outermost one allows, which is {max_calls} here"
            )));
        }
        let id = id_of(self.base.correlation_id, path);
        let mut own = self
            .base
            .fork_step(tool, arguments, id, chain.clone(), step.repeatable);
        if let Some(key) = &self.base.extras.idempotency_key {
            own.extras.idempotency_key = Some(format!("{key}/{path}").into());
        }
        if let Some(timeout) = step.timeout {
            own.tighten_deadline(timeout);
        }
        if let Some(retry) = step.retry {
            own.overrides = Some(Arc::new((self.run.retry)(retry)));
        }
        own.explain("workflow", || format!("step `{path}` calls `{}`", call.tool));
        let mut resume = self.run.resume.lock();
        if resume.as_ref().is_some_and(|(waiting, _)| waiting == path) {
            own.extras.resume = resume.take().map(|(_, resume)| Arc::new(resume));
        }
        Ok(own)
    }

    /// Returns `true` if the result of the workflow is the reply to this step.
    fn is_last(&self, step: &Step) -> bool {
        let steps = &self.run.definition.steps.steps;
        steps.last().is_some_and(|last| std::ptr::eq(last, step))
    }

    fn failed(
        &self,
        path: String,
        call: &ToolCall,
        attempts: u32,
        start: Instant,
        error: ToolError,
    ) -> CallEnd {
        self.record(path, call, StepStatus::Failed, attempts, start, Some(&error));
        CallEnd::Failed(error)
    }

    fn record(
        &self,
        path: String,
        call: &ToolCall,
        status: StepStatus,
        attempts: u32,
        start: Instant,
        error: Option<&ToolError>,
    ) {
        self.run.record(StepRecord {
            step: path,
            tool: Some(call.tool.clone()),
            status,
            attempts,
            duration: self.base.clock.now().since(start),
            error: error.map(|error| (error.kind(), error.message().to_owned())),
        });
    }
}

/// End of the path of a fallback.
pub(super) const FALLBACK: &str = "!fallback";

/// Reason for which a call has no reply.
enum NoReply {
    Error(ToolError),
    Waiting(WaitingFor),
}

/// Returns the value that other steps see: the structured result, or else the text, read if it is a JSON object or list.
fn value_of(reply: &Reply) -> RawJson {
    if let Some(structured) = reply.structured() {
        return structured;
    }
    let text = reply.text();
    match RawJson::parse(text.clone()) {
        Ok(value) if matches!(value.kind(), JsonKind::Object | JsonKind::Array) => value,
        _ => RawJson::from(text.as_str()),
    }
}

/// Returns the id of the call of a step: the same each time for the same call of its workflow.
fn id_of(workflow: CorrelationId, path: &str) -> CorrelationId {
    let digest = Sha256::new()
        .chain_update(workflow.0.to_be_bytes())
        .chain_update(path)
        .finalize();
    CorrelationId(u128::from_be_bytes(std::array::from_fn(|index| digest[index])))
}

/// Returns the error of a step whose input cannot be made.
pub(super) fn invalid(problem: impl Display) -> ToolError {
    ToolError::new(ErrorKind::InvalidArguments, problem.to_string())
}

fn refused(message: String) -> ToolError {
    ToolError::new(ErrorKind::Denied, message)
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(MAX_TEXT).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Returns the reply of a call, or why there is none.
fn outcome(own: &CallContext, result: Result<Outcome, ToolError>) -> Result<Reply, NoReply> {
    let error = match result {
        Ok(Outcome::Reply(reply)) if reply.is_error => {
            ToolError::new(ErrorKind::UpstreamError, shortened(&reply.text()))
        }
        Ok(Outcome::Reply(reply)) => return Ok(reply),
        Ok(Outcome::NeedsInput(input)) => return Err(NoReply::Waiting(WaitingFor::Input(input))),
        Ok(Outcome::Pending(pending)) => return Err(NoReply::Waiting(WaitingFor::Decision(pending))),
        Ok(_) => ToolError::new(
            ErrorKind::OutcomeUnknown,
            "the tool continues as a task, for which no step can wait",
        ),
        Err(error) => error,
    };
    Err(NoReply::Error(own.mark(error)))
}
