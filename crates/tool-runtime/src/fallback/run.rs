//! A run through the fallback ladder of a failed call.

use std::{pin::pin, sync::Arc, time::Duration};

use raw_json::RawJson;
use tool_core::{
    CallContext, Degraded, DegradedStep, ErrorKind, FailedStep, FallbackOf, NamedLayer, Outcome, Reentry,
    Reply, Tool, ToolError, format_duration,
};

use super::{
    FallbackLayer,
    reply_check::{age_in_meta, check_output, default_reply},
};
use crate::FailureStep;
use crate::{degraded::mark_degraded, timeout::within};

/// Source of a default reply.
const CONFIGURATION: &str = "configuration";

/// A run through the steps of a fallback ladder.
pub(super) struct FallbackRun<'a> {
    pub(super) settings: &'a FallbackLayer,
    pub(super) steps: Vec<&'a FailureStep>,
    pub(super) fallback_of: FallbackOf,
    /// The caller's `_meta`, from before the first attempt.
    pub(super) meta: Option<RawJson>,
    pub(super) errors: Vec<FailedStep>,
}

/// Result of a fallback tool.
enum FallbackResult {
    /// It answered.
    Answered(Reply),
    /// It failed, and the next step may be taken.
    Failed(ToolError),
    /// It failed and may have run: no other step may be taken.
    Final(ToolError),
}

/// Call of a fallback tool. Merges its context into the original call's on drop, also when its future is dropped.
struct FallbackCall<'a> {
    cx: &'a mut CallContext,
    own: Option<CallContext>,
}

impl FallbackRun<'_> {
    /// Takes the steps in order until one gives a reply. Otherwise returns the original error.
    pub(super) async fn run(mut self, cx: &mut CallContext, error: ToolError) -> Result<Outcome, ToolError> {
        let steps = std::mem::take(&mut self.steps);
        for (index, step) in steps.iter().enumerate() {
            match step {
                FailureStep::Fallback(name) => {
                    match self.call_fallback(cx, name, &steps[index + 1..]).await {
                        None => {}
                        Some(FallbackResult::Answered(reply)) => {
                            let degraded = Degraded::new(DegradedStep::Fallback, name.clone());
                            return Ok(self.degrade(cx, reply, degraded));
                        }
                        Some(FallbackResult::Failed(error)) => self.record_failure(cx, name, &error),
                        Some(FallbackResult::Final(error)) => {
                            let kind = error.kind();
                            cx.explain(FallbackLayer::NAME, || {
                                format!("`{name}` ended as `{kind}`: no other step is taken")
                            });
                            let message = format!("as a fallback of `{}`, {error}", cx.tool().name());
                            return Err(cx.mark(error.with_message(message)));
                        }
                    }
                }
                _ if self.fallback_of.wants_effect() => {
                    cx.explain(FallbackLayer::NAME, || {
                        "no stale or default reply: the call has an idempotency key".to_owned()
                    });
                }
                FailureStep::Stale(max_age) => match self.settings.cache.stale(cx, *max_age) {
                    Ok((reply, age)) => {
                        let mut degraded = Degraded::new(DegradedStep::Stale, "cache");
                        degraded.age = age;
                        return Ok(self.degrade(cx, reply, degraded));
                    }
                    Err(reason) => {
                        cx.explain(FallbackLayer::NAME, || format!("no stale reply: {reason}"));
                    }
                },
                FailureStep::Default(value) => match default_reply(cx, value) {
                    Ok(reply) => {
                        let degraded = Degraded::new(DegradedStep::Default, CONFIGURATION);
                        return Ok(self.degrade(cx, reply, degraded));
                    }
                    Err(reason) => {
                        cx.explain(FallbackLayer::NAME, || format!("no default reply: {reason}"));
                        self.errors.push(FailedStep::new(
                            Some(CONFIGURATION.into()),
                            ErrorKind::ResultInvalid,
                        ));
                    }
                },
            }
        }
        cx.explain(FallbackLayer::NAME, || "no step is left".to_owned());
        Err(cx.mark(with_fallback_errors(error, &self.errors[1..])))
    }

    /// Calls a tool instead of the one that failed. Returns `None` if the tool is skipped.
    async fn call_fallback(
        &self,
        cx: &mut CallContext,
        name: &Arc<str>,
        rest: &[&FailureStep],
    ) -> Option<FallbackResult> {
        let reentry = self.settings.reentry.as_ref()?;
        if !self.fallback_of.adds(name) {
            cx.explain(FallbackLayer::NAME, || {
                format!("not `{name}`: it was tried already")
            });
            return None;
        }
        let limit = time_share(cx, rest).or_else(|| cx.remaining());
        if limit.is_some_and(|limit| limit.is_zero()) {
            cx.explain(FallbackLayer::NAME, || format!("not `{name}`: no time is left"));
            return None;
        }
        cx.explain(FallbackLayer::NAME, || match limit {
            Some(limit) => format!("tries `{name}` for {}", format_duration(limit)),
            None => format!("tries `{name}`"),
        });
        let (tool, left) = match self.find(&**reentry, cx, name, limit).await {
            Ok(found) => found,
            Err(error) => return Some(FallbackResult::Failed(error)),
        };
        let mut own = cx.fork_fallback(tool, self.fallback_of.clone());
        own.extras.meta.clone_from(&self.meta);
        if let Some(left) = left {
            own.tighten_deadline(left);
        }
        let ask = cx.origin.ask.clone();
        let mut call = FallbackCall { cx, own: Some(own) };
        let own = call.own.as_mut()?;
        // The stack of the fallback has a limit of its own, which is not for this layer to rely on.
        let ended = {
            let called = pin!(reentry.call(own));
            within(left.unwrap_or(Duration::MAX), ask.as_ref(), called).await
        };
        let result = ended.unwrap_or_else(|| {
            let limit = format_duration(left.unwrap_or_default());
            Err(own.unanswered(ErrorKind::Timeout, format!("no answer within {limit}")))
        });
        let result = FallbackResult::from_outcome(own, result, call.cx.tool());
        drop(call);
        Some(result)
    }

    /// Finds the tool of this name. Returns it with the time that is left for it.
    async fn find(
        &self,
        reentry: &dyn Reentry,
        cx: &CallContext,
        name: &str,
        limit: Option<Duration>,
    ) -> Result<(Arc<Tool>, Option<Duration>), ToolError> {
        let found = pin!(reentry.find(name, cx));
        let Some(limit) = limit else {
            return Ok((found.await?, None));
        };
        let start = cx.clock.now();
        let found = within(limit, None, found).await.unwrap_or_else(|| {
            let message = format!(
                "the server of `{name}` did not start within {}",
                format_duration(limit)
            );
            Err(ToolError::new(ErrorKind::Timeout, message))
        });
        let elapsed = cx.clock.now().since(start);
        Ok((found?, Some(limit.saturating_sub(elapsed))))
    }

    fn record_failure(&mut self, cx: &mut CallContext, name: &Arc<str>, error: &ToolError) {
        let kind = error.kind();
        cx.explain(FallbackLayer::NAME, || format!("not `{name}`: {error}"));
        // A caller who may not call a tool does not learn its name.
        let is_visible = !matches!(kind, ErrorKind::Denied | ErrorKind::NotFound);
        self.errors
            .push(FailedStep::new(is_visible.then(|| name.clone()), kind));
    }

    /// Returns the reply of a step, marked as degraded.
    fn degrade(self, cx: &mut CallContext, mut reply: Reply, mut degraded: Degraded) -> Outcome {
        // The `_meta` of a fallback's layers describes the fallback's call, not this one.
        degraded.said = reply.take_meta();
        if degraded.step == DegradedStep::Fallback {
            degraded.age = age_in_meta(&degraded.said);
        }
        degraded.errors = self.errors;
        let Degraded {
            step, source, age, ..
        } = &degraded;
        cx.explain(FallbackLayer::NAME, || match step {
            DegradedStep::Fallback => format!("`{source}` answered in its place"),
            DegradedStep::Stale => format!("returns a stale reply, {} old", format_duration(*age)),
            DegradedStep::Default => "returns the default of the configuration".to_owned(),
        });
        mark_degraded(cx, &mut reply, &degraded);
        reply.into()
    }
}

impl FallbackResult {
    /// Classifies the outcome of a fallback's call. `original` is the tool that was called first.
    fn from_outcome(own: &CallContext, result: Result<Outcome, ToolError>, original: &Tool) -> Self {
        let error = match result {
            Ok(Outcome::Reply(reply)) if reply.is_error => {
                ToolError::new(ErrorKind::UpstreamError, "the tool reports a failure")
            }
            Ok(Outcome::Reply(reply)) => match check_output(original, &reply) {
                Ok(()) => return Self::Answered(reply),
                Err(mismatch) => {
                    let message = format!("the reply of `{}` {mismatch}", own.tool().name());
                    ToolError::new(ErrorKind::ResultInvalid, message)
                }
            },
            Ok(Outcome::Task(_)) => {
                let message = format!(
                    "`{}` continues as a task, for which nothing can wait",
                    own.tool().name()
                );
                ToolError::new(ErrorKind::OutcomeUnknown, message)
            }
            Ok(_) => ToolError::new(
                ErrorKind::MissingCapability,
                "the tool needs input from the caller first",
            ),
            Err(error) => error,
        };
        if own.may_have_run() || error.may_have_run() {
            Self::Final(error)
        } else {
            Self::Failed(error)
        }
    }
}

impl Drop for FallbackCall<'_> {
    fn drop(&mut self) {
        if let Some(own) = self.own.take() {
            self.cx.merge_fallback(own);
        }
    }
}

/// Returns the share of the remaining time for a tool before these steps: half of it before another tool, nine tenths before a
/// stale or default reply. Returns `None` if the tool may take all of the time, or if there is no deadline.
pub(super) fn time_share(cx: &CallContext, rest: &[&FailureStep]) -> Option<Duration> {
    let left = cx.remaining()?;
    let is_tool = |step: &&FailureStep| matches!(step, FailureStep::Fallback(_));
    match rest {
        [] => None,
        _ if rest.iter().any(is_tool) => Some(left / 2),
        _ => Some(left - left / 10),
    }
}

/// Returns the original error, extended by the failures of the fallback steps.
fn with_fallback_errors(error: ToolError, fallbacks: &[FailedStep]) -> ToolError {
    if fallbacks.is_empty() {
        return error;
    }
    let fallbacks: Vec<_> = fallbacks.iter().map(ToString::to_string).collect();
    let message = format!("{} (and in its place, {})", error.message(), fallbacks.join(", "));
    error.with_message(message)
}
