//! A call of a route.

use std::sync::Arc;

use raw_json::RawJson;
use serde_json::Value;
use tool_core::{
    Arguments, CallChain, CallContext, ErrorKind, FailedStep, HealthSignal, HealthSignals, InputRequest,
    Outcome, Reply, Resume, Tool, ToolError,
};
use tool_mapping::{MappingValues, Results};

use crate::{
    RouteExecutor, RouteReport, Router,
    candidates::{Candidate, Candidates},
    executor::WaitingCalls,
};

/// Name under which a route explains its decisions.
const LAYER: &str = "route";
/// Version of the form of a state.
const VERSION: u64 = 1;

/// A call of a route.
pub(crate) struct RouteCall<'a> {
    pub(crate) router: &'a Router,
    pub(crate) executor: &'a RouteExecutor,
    pub(crate) waiting: &'a WaitingCalls,
}

/// Call of a candidate. Merges its context into that of the route when it ends or is dropped.
struct CandidateCall<'a> {
    cx: &'a mut CallContext,
    own: Option<CallContext>,
}

impl Drop for CandidateCall<'_> {
    fn drop(&mut self) {
        if let Some(own) = self.own.take() {
            self.cx.merge_step(own);
        }
    }
}

/// Candidates that failed for a call.
#[derive(Default)]
struct Failed {
    steps: Vec<FailedStep>,
    /// Error of the first candidate.
    first: Option<ToolError>,
}

impl RouteCall<'_> {
    pub(crate) async fn run(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let chain = self.chain(cx)?;
        let (caller, client) = (cx.origin.caller.clone(), cx.client_identity());
        let wanted = &self.router.definition().wanted;
        let tools = self.executor.tools.find(wanted, &caller, &client).await;
        let candidates = self.router.candidates(&tools);
        let now = cx.clock.now();
        let obstacle = |tool: &Tool| self.executor.tools.obstacle(tool, &caller, now);
        let mut ranking = self.router.rank(&candidates, now);
        let mut failed = Failed::default();
        let (mut resumed, resume) = self.resumed(cx, &candidates)?;
        if let Some(index) = resumed {
            ranking.take(index);
        }
        cx.extras.resume = None;
        let mut resume = resume;
        for attempt in 1..=self.router.definition().max_attempts {
            let picked = resumed
                .take()
                .or_else(|| ranking.next(&obstacle, self.router.jitter(), cx.is_dry_run()));
            let Some(picked) = picked else { break };
            let candidate = &candidates.entries[picked];
            let has_more = attempt < self.router.definition().max_attempts && ranking.has_more();
            let result = self.call(cx, candidate, &chain, has_more, resume.take()).await;
            let (error, may_have_run) = match result {
                Ok(outcome) => {
                    let report = RouteReport::for_caller(&ranking, Some(picked), &obstacle);
                    explain(cx, &report);
                    return Ok(self.told(cx, candidate, outcome, &report, &failed.steps));
                }
                Err(failure) => failure,
            };
            let kind = error.kind();
            let name = candidate.tool.name();
            cx.explain(LAYER, || format!("`{name}` failed: {error}"));
            // Only who may call a tool learns its name.
            let is_visible = !matches!(kind, ErrorKind::Denied | ErrorKind::NotFound);
            failed.add(is_visible.then(|| name.clone()), &error);
            if may_have_run || kind == ErrorKind::Cancelled || cx.has_expired() {
                let report = RouteReport::for_caller(&ranking, Some(picked), &obstacle);
                explain(cx, &report);
                return Err(cx.mark(failure(error, may_have_run, &failed, &report)));
            }
        }
        let report = RouteReport::for_caller(&ranking, None, &obstacle);
        explain(cx, &report);
        Err(cx.mark(match failed.first.take() {
            Some(first) => failure(first, false, &failed, &report),
            None => self.no_candidate(&report),
        }))
    }

    /// Begins the chain of the calls of this route.
    fn chain(&self, cx: &CallContext) -> Result<Arc<CallChain>, ToolError> {
        let outer = cx.called_from.clone();
        if outer
            .as_ref()
            .is_some_and(|outer| outer.tools().count() >= CallChain::MAX_DEPTH)
        {
            let message = format!(
                "routes and workflows are nested deeper than {} levels",
                CallChain::MAX_DEPTH
            );
            return Err(ToolError::new(ErrorKind::Denied, message));
        }
        let max_calls = u32::try_from(self.router.definition().max_attempts).unwrap_or(u32::MAX);
        Ok(CallChain::begin(cx.tool().name().clone(), outer, max_calls))
    }

    /// Returns the candidate that an earlier round of this call went to, with the answers for it.
    fn resumed(
        &self,
        cx: &CallContext,
        candidates: &Candidates,
    ) -> Result<(Option<usize>, Option<Resume>), ToolError> {
        let position = |name: &str| {
            let mut entries = candidates.entries.iter();
            entries.position(|entry| **entry.tool.name() == *name)
        };
        let Some(resume) = &cx.extras.resume else {
            let awaited = match cx.is_dry_run() {
                true => None,
                false => self.waiting.take(cx),
            };
            return Ok((awaited.and_then(|name| position(&name)), None));
        };
        let invalid = || {
            let message = "the state of the call is not that of a route; call again without it";
            ToolError::new(ErrorKind::InvalidArguments, message)
        };
        let state = resume.state.as_ref().ok_or_else(invalid)?;
        let version: Option<u64> = state.get("route").and_then(|version| version.to().ok());
        let name = state.get("tool").and_then(|name| name.string());
        let name = name.filter(|_| version == Some(VERSION)).ok_or_else(invalid)?;
        let index = position(&name).ok_or_else(|| {
            let message =
                "the tool that asked is no candidate of the route any longer; call again without the state";
            ToolError::new(ErrorKind::ToolChanged, message)
        })?;
        let inner = Resume::new(resume.responses.clone()).with_state(state.get("inner"));
        Ok((Some(index), Some(inner)))
    }

    /// Calls a candidate. The error comes with `true` if no other candidate may be called after it.
    async fn call(
        &self,
        cx: &mut CallContext,
        candidate: &Candidate,
        chain: &Arc<CallChain>,
        has_more: bool,
        resume: Option<Resume>,
    ) -> Result<Outcome, (ToolError, bool)> {
        let tool = candidate.tool.clone();
        if chain.tools().any(|outer| outer == tool.name()) {
            let message = format!("`{}` would call itself", tool.name());
            return Err((ToolError::new(ErrorKind::Denied, message), false));
        }
        if !chain.take_call() {
            let message = "the workflow around the route makes more calls than its `max_calls` allows";
            return Err((ToolError::new(ErrorKind::Denied, message), true));
        }
        let arguments = self.arguments(cx, &tool).map_err(|error| (error, false))?;
        cx.explain(LAYER, || format!("calls `{}`", tool.name()));
        // The list may be one of an earlier run: the call is made of the tool as it is now.
        let tool = match self.executor.reentry.find(tool.name(), cx).await {
            Ok(tool) => tool,
            Err(error) => return Err((error, false)),
        };
        let mut own = cx.fork_step(tool, arguments, cx.correlation_id, chain.clone(), false);
        own.origin.progress.clone_from(&cx.origin.progress);
        own.extras.meta.clone_from(&cx.extras.meta);
        own.extras.idempotency_key.clone_from(&cx.extras.idempotency_key);
        own.extras.resume = resume.map(Arc::new);
        // Half of the time is for the candidates after it, if it may be given up.
        if has_more
            && own.may_run_twice()
            && let Some(left) = own.remaining()
        {
            own.tighten_deadline(left / 2);
        }
        let start = cx.clock.now();
        let in_flight = (!cx.is_dry_run()).then(|| candidate.figures.begin());
        let output = cx.tool().clone();
        let mut call = CandidateCall { cx, own: Some(own) };
        let Some(own) = call.own.as_mut() else {
            // It was set just now.
            return Err((ToolError::new(ErrorKind::Internal, "the call is gone"), true));
        };
        let result = self.executor.reentry.call(own).await;
        let now = own.clock.now();
        let elapsed = now.since(start);
        if in_flight.is_some() {
            match HealthSignals::from_result(own, Some(&result), elapsed).tool {
                HealthSignal::Answered | HealthSignal::Reported | HealthSignal::ToolFailure => {
                    candidate.figures.record(now, elapsed, false);
                }
                HealthSignal::Failure | HealthSignal::AuthFailure => {
                    candidate.figures.record(now, elapsed, true);
                }
                HealthSignal::Neutral | HealthSignal::NotObserved => {}
            }
        }
        let result = result.and_then(|outcome| check_output(&output, outcome));
        let may_have_run = own.may_have_run();
        result.map_err(|error| {
            let may_have_run = may_have_run || error.may_have_run();
            (error, may_have_run)
        })
    }

    /// Returns the arguments for a candidate.
    fn arguments(&self, cx: &CallContext, tool: &Tool) -> Result<Arc<Arguments>, ToolError> {
        let mappings = &self.router.definition().arguments;
        let mapping = tool.names().find_map(|name| mappings.get(name));
        let Some(mapping) = mapping else {
            return Ok(cx.arguments.clone());
        };
        let made = mapping.make(&MappingValues::new(cx.arguments.raw(), &Results::default()));
        let made = made.map_err(|problem| {
            let message = format!("the arguments of `{}` cannot be made: {problem}", tool.name());
            ToolError::new(ErrorKind::InvalidArguments, message)
        })?;
        Arguments::from_raw(made).map(Arc::new)
    }

    /// Adds what the route has to say to the outcome of a candidate.
    fn told(
        &self,
        cx: &CallContext,
        candidate: &Candidate,
        outcome: Outcome,
        report: &RouteReport,
        failed: &[FailedStep],
    ) -> Outcome {
        let name = candidate.tool.name();
        match outcome {
            Outcome::Reply(mut reply) => {
                reply.add_meta(RouteExecutor::META_KEY, report.to_meta(failed));
                Outcome::Reply(reply)
            }
            Outcome::NeedsInput(input) => {
                let mut state = vec![
                    ("route", RawJson::from(VERSION)),
                    ("tool", RawJson::from(&**name)),
                ];
                state.extend(input.state.map(|inner| ("inner", inner)));
                let input = InputRequest::new(input.requests);
                Outcome::NeedsInput(Box::new(input.with_state(Some(RawJson::from_members(&state)))))
            }
            Outcome::Pending(mut pending) => {
                pending.reason = format!("`{name}`: {}", pending.reason);
                if !cx.is_dry_run() {
                    self.waiting.put(cx, name.clone());
                }
                Outcome::Pending(pending)
            }
            other => other,
        }
    }

    /// Returns the error of a call for which there is no candidate.
    fn no_candidate(&self, report: &RouteReport) -> ToolError {
        let definition = self.router.definition();
        let wanted = match &definition.wanted.capability {
            Some(capability) => format!("the capability `{capability}`"),
            None => "one of the names of the route".to_owned(),
        };
        if report.candidates.is_empty() {
            // Whether a tool exists that the caller may not call is not told.
            let message = format!("no tool that you may call has {wanted}");
            return ToolError::new(ErrorKind::NotFound, message);
        }
        let reasons = report.candidates.iter().take(3).map(ToString::to_string);
        let reasons: Vec<_> = reasons.collect();
        let message = format!("every tool with {wanted} is out: {}", reasons.join("; "));
        let detail = RawJson::from_members(&[("route", report.to_meta(&[]))]);
        let error = ToolError::new(ErrorKind::Unavailable, message).with_detail(detail);
        match report.retry_after() {
            Some(pause) => error.with_retry_after(pause),
            None => error,
        }
    }
}

impl Failed {
    fn add(&mut self, tool: Option<Arc<str>>, error: &ToolError) {
        self.steps.push(FailedStep::new(tool, error.kind()));
        self.first.get_or_insert_with(|| error.clone());
    }
}

/// Returns the error of a call whose candidates failed.
fn failure(error: ToolError, may_have_run: bool, failed: &Failed, report: &RouteReport) -> ToolError {
    let others: Vec<_> = failed.steps.iter().map(ToString::to_string).collect();
    let message = match others.as_slice() {
        [only] => format!("{only}: {}", error.message()),
        others => format!("{} ({})", error.message(), others.join(", ")),
    };
    let mut members = vec![("route", report.to_meta(&failed.steps))];
    members.extend(error.detail().map(|detail| ("detail", detail.clone())));
    let detail = RawJson::from_members(&members);
    let error = error.with_message(message).with_detail(detail);
    if may_have_run {
        error.with_may_have_run()
    } else {
        error
    }
}

/// Checks a reply against the output schema of the route.
fn check_output(route: &Tool, outcome: Outcome) -> Result<Outcome, ToolError> {
    let (Some(schema), Outcome::Reply(reply)) = (route.output(), &outcome) else {
        return Ok(outcome);
    };
    let fits = |reply: &Reply| {
        let value: Value = reply.structured()?.to().ok()?;
        schema.check(&value).ok()
    };
    if reply.is_error || fits(reply).is_some() {
        return Ok(outcome);
    }
    let message = format!("the reply does not fit the output schema of `{}`", route.name());
    Err(ToolError::new(ErrorKind::ResultInvalid, message))
}

fn explain(cx: &mut CallContext, report: &RouteReport) {
    for candidate in &report.candidates {
        cx.explain(LAYER, || candidate.to_string());
    }
}
