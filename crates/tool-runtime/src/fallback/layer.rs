use std::{fmt, pin::pin, sync::Arc, time::Duration};

use crate::{FailureStep, FallbackLadder};
use raw_json::RawJson;
use serde_json::Value;
use tool_core::{
    CallContext, Degraded, DegradedStep, ErrorKind, Event, FailedStep, FallbackOf, Health, HealthStatus,
    Invoke, Layer, Outcome, Reentry, Reply, Target, Tool, ToolError, format_duration,
};

use crate::{CacheLayer, within::within};

/// Finds something else to give when a call fails: the tool's ladder says what, see [`FailureStep`]. The steps are taken in
/// their order, and the first that comes to an answer counts; if none does, the call fails as it failed first.
///
/// # When
/// When the failure is of a kind that [degrades](ErrorKind::degrades), and never when a tool that must not run twice may
/// have run ([`CallContext::may_have_run`]). An answer in which a tool itself reports a failure is an answer. A call with an idempotency key is for its effect, and its answer is
/// remembered: it gets that of a fallback, and no kept or given one.
///
/// # Fallbacks
/// A fallback is called through the [`Reentry`]: admitted, validated and limited as itself, with the same arguments, by the same
/// caller, under the same correlation id. It has no idempotency key, cannot ask for another round and becomes no task. What
/// must be approved is passed over. Of several in a row, those are tried last that the [`Health`] calls unhealthy. No tool is
/// tried twice for a call. Its answer must fit the output schema of the tool that was called, and is never kept as that
/// one's.
///
/// # Time
/// One deadline holds for everything. As long as another tool stands behind, the one that is tried has half of the time that
/// is left; as long as only kept or given answers do, nine tenths.
///
/// # What is said
/// A reply that was found in this way says so in its `_meta`, under [`Degraded::META_KEY`]; so do the log, as a warning,
/// and [`Event::Degraded`].
///
/// # Order
/// Outside [`CacheLayer`], so that no fallback's answer is kept as the tool's own; inside whatever keys on a call, so that a tool
/// and its fallback never both run under one idempotency key.
#[derive(Clone)]
pub struct FallbackLayer {
    share: CacheLayer,
    gate: Option<Arc<dyn Reentry>>,
    health: Option<Arc<dyn Health>>,
}

/// The layer of [`FallbackLayer`].
#[derive(Debug, Clone)]
pub struct Fallback<S> {
    settings: FallbackLayer,
    inner: S,
}

/// Where a given answer is from.
const CONFIGURATION: &str = "configuration";

/// A way down a ladder.
struct Descent<'a> {
    settings: &'a FallbackLayer,
    steps: Vec<&'a FailureStep>,
    fallback_of: FallbackOf,
    /// What the caller said beside the arguments, before anything was tried.
    meta: Option<RawJson>,
    errors: Vec<FailedStep>,
}

/// What a stand-in came to.
enum Stood {
    /// This answer.
    Answered(Reply),
    /// A failure, after which others may be tried.
    Failed(ToolError),
    /// A failure, with which everything ends.
    Ended(ToolError),
}

/// The call of a stand-in, which reports back to the call that it is made for, also when nobody waits for it any longer.
struct StandIn<'a> {
    cx: &'a mut CallContext,
    own: Option<CallContext>,
}

impl FallbackLayer {
    /// A layer that gives what this one keeps.
    #[must_use]
    pub fn new(share: CacheLayer) -> Self {
        Self {
            share,
            gate: None,
            health: None,
        }
    }

    /// The same layer, which calls fallbacks through this. Without it, there are none.
    #[must_use]
    pub fn gate(mut self, gate: Arc<dyn Reentry>) -> Self {
        self.gate = Some(gate);
        self
    }

    /// The same layer, which tries those fallbacks last that are not well by this.
    #[must_use]
    pub fn health(mut self, health: Arc<dyn Health>) -> Self {
        self.health = Some(health);
        self
    }

    /// The steps in the order in which they are taken: fallbacks that follow each other, the unhealthy ones last.
    fn order<'a>(&self, ladder: &'a [FailureStep]) -> Vec<&'a FailureStep> {
        let is_ill = |step: &FailureStep| match (step, &self.health) {
            (FailureStep::Fallback(name), Some(health)) => {
                health.tool(name).status == HealthStatus::Unhealthy
            }
            _ => false,
        };
        let are_alike = |one: &FailureStep, other: &FailureStep| {
            matches!((one, other), (FailureStep::Fallback(_), FailureStep::Fallback(_)))
        };
        let mut steps = Vec::with_capacity(ladder.len());
        for run in ladder.chunk_by(are_alike) {
            let (ill, well): (Vec<_>, Vec<_>) = run.iter().partition(|step| is_ill(step));
            steps.extend(well.into_iter().chain(ill));
        }
        steps
    }
}

impl<S> Layer<S> for FallbackLayer {
    type Invoke = Fallback<S>;

    fn layer(self, inner: S) -> Fallback<S> {
        Fallback {
            settings: self,
            inner,
        }
    }
}

impl<S: Invoke> Invoke for Fallback<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let ladder = cx.tool().settings().get::<FallbackLadder>();
        let Some(ladder) = ladder.filter(|_| matches!(cx.target, Target::Tool(_))) else {
            return self.inner.invoke(cx).await;
        };
        let FallbackLadder(ladder) = ladder.clone();
        if cx.is_dry_run() {
            cx.explain("degrade", || {
                format!("if it fails: {}", Shown(&ladder.iter().collect::<Vec<_>>()))
            });
            return self.inner.invoke(cx).await;
        }
        // Boxed, so that calls without a ladder do not carry the room for this.
        Box::pin(self.guarded(cx, &ladder)).await
    }
}

impl<S: Invoke> Fallback<S> {
    /// Makes the call, and goes down the ladder if it fails.
    async fn guarded(&self, cx: &mut CallContext, ladder: &[FailureStep]) -> Result<Outcome, ToolError> {
        let meta = cx.extras.meta.clone();
        let error = match self.first(cx, ladder).await {
            Err(error) => error,
            answered => return answered,
        };
        if let Some(why) = bar(cx, &error) {
            cx.explain("degrade", || format!("nothing else is given: {why}"));
            return Err(cx.mark(error));
        }
        let name = cx.tool().name().clone();
        let descent = Descent {
            settings: &self.settings,
            steps: self.settings.order(ladder),
            fallback_of: cx
                .fallback_of
                .clone()
                .unwrap_or_else(|| FallbackOf::new(name.clone(), cx.extras.idempotency_key.is_some())),
            meta,
            errors: vec![FailedStep {
                tool: Some(name),
                kind: error.kind(),
            }],
        };
        descent.go(cx, error).await
    }

    /// Makes the call within its part of the time.
    async fn first(&self, cx: &mut CallContext, ladder: &[FailureStep]) -> Result<Outcome, ToolError> {
        let behind: Vec<_> = ladder.iter().collect();
        let Some(limit) = part(cx, &behind) else {
            return self.inner.invoke(cx).await;
        };
        let (whole, ask) = (cx.deadline, cx.origin.ask.clone());
        cx.tighten_deadline(limit);
        let ended = {
            let call = pin!(self.inner.invoke(cx));
            within(limit, ask.as_ref(), call).await
        };
        cx.deadline = whole;
        ended.unwrap_or_else(|| {
            let message = format!(
                "no answer within the {} that its ladder leaves it",
                format_duration(limit)
            );
            Err(cx.unanswered(ErrorKind::Timeout, message))
        })
    }
}

impl Descent<'_> {
    async fn go(mut self, cx: &mut CallContext, error: ToolError) -> Result<Outcome, ToolError> {
        let steps = std::mem::take(&mut self.steps);
        for (index, step) in steps.iter().enumerate() {
            match step {
                FailureStep::Fallback(name) => match self.fallback(cx, name, &steps[index + 1..]).await {
                    None => {}
                    Some(Stood::Answered(reply)) => {
                        let step = Degraded::new(DegradedStep::Fallback, name.clone());
                        return Ok(self.give(cx, reply, step));
                    }
                    Some(Stood::Failed(error)) => self.failed(cx, name, &error),
                    Some(Stood::Ended(error)) => {
                        let kind = error.kind();
                        cx.explain("degrade", || {
                            format!("`{name}` ended as `{kind}`: nothing else is given")
                        });
                        let message = format!("in the place of `{}`, {error}", cx.tool().name());
                        return Err(cx.mark(error.with_message(message)));
                    }
                },
                _ if self.fallback_of.wants_effect() => {
                    cx.explain("degrade", || "no other answer: the call has a key".to_owned());
                }
                FailureStep::Stale(max_age) => match self.settings.share.stale(cx, *max_age) {
                    Ok((reply, age)) => {
                        let mut step = Degraded::new(DegradedStep::Stale, "cache");
                        step.age = age;
                        return Ok(self.give(cx, reply, step));
                    }
                    Err(why) => cx.explain("degrade", || format!("no kept answer: {why}")),
                },
                FailureStep::Default(value) => match given(cx, value) {
                    Ok(reply) => {
                        let step = Degraded::new(DegradedStep::Default, CONFIGURATION);
                        return Ok(self.give(cx, reply, step));
                    }
                    Err(why) => {
                        cx.explain("degrade", || format!("no given answer: {why}"));
                        self.errors.push(FailedStep {
                            tool: Some(CONFIGURATION.into()),
                            kind: ErrorKind::ResultInvalid,
                        });
                    }
                },
            }
        }
        cx.explain("degrade", || "nothing was left".to_owned());
        Err(cx.mark(told(error, &self.errors[1..])))
    }

    /// Calls a tool in the place of the one that failed; nothing if it is passed over.
    async fn fallback(
        &self,
        cx: &mut CallContext,
        name: &Arc<str>,
        behind: &[&FailureStep],
    ) -> Option<Stood> {
        let gate = self.settings.gate.as_ref()?;
        if !self.fallback_of.adds(name) {
            cx.explain("degrade", || format!("not `{name}`: it was tried already"));
            return None;
        }
        let limit = part(cx, behind).or_else(|| cx.remaining());
        if limit.is_some_and(|limit| limit.is_zero()) {
            cx.explain("degrade", || format!("not `{name}`: no time is left"));
            return None;
        }
        cx.explain("degrade", || match limit {
            Some(limit) => format!("tries `{name}` for {}", format_duration(limit)),
            None => format!("tries `{name}`"),
        });
        let (tool, left) = match self.find(&**gate, cx, name, limit).await {
            Ok(found) => found,
            Err(error) => return Some(Stood::Failed(error)),
        };
        let mut own = cx.fork_fallback(tool, self.fallback_of.clone());
        own.extras.meta.clone_from(&self.meta);
        if let Some(left) = left {
            own.tighten_deadline(left);
        }
        let mut fork_fallback = StandIn { cx, own: Some(own) };
        let own = fork_fallback.own.as_mut()?;
        let result = gate.call(own).await;
        let stood = stood(own, result, fork_fallback.cx.tool());
        drop(fork_fallback);
        Some(stood)
    }

    /// The tool of this name, with the time that is left for it.
    async fn find(
        &self,
        gate: &dyn Reentry,
        cx: &CallContext,
        name: &str,
        limit: Option<Duration>,
    ) -> Result<(Arc<Tool>, Option<Duration>), ToolError> {
        let found = pin!(gate.find(name, cx));
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
        let took = cx.clock.now().since(start);
        Ok((found?, Some(limit.saturating_sub(took))))
    }

    fn failed(&mut self, cx: &mut CallContext, name: &Arc<str>, error: &ToolError) {
        let kind = error.kind();
        cx.explain("degrade", || format!("not `{name}`: {error}"));
        // Whom somebody may not call, they need not know of.
        let is_known = !matches!(kind, ErrorKind::Denied | ErrorKind::NotFound);
        self.errors.push(FailedStep {
            tool: is_known.then(|| name.clone()),
            kind,
        });
    }

    fn give(self, cx: &mut CallContext, mut reply: Reply, mut degraded: Degraded) -> Outcome {
        // What the layers of a fallback said is of that one's call.
        degraded.said = reply.take_meta();
        if degraded.step == DegradedStep::Fallback {
            degraded.age = age_of(&degraded.said);
        }
        degraded.errors = self.errors;
        let Degraded {
            step, source, age, ..
        } = &degraded;
        cx.explain("degrade", || match step {
            DegradedStep::Fallback => format!("`{source}` answered in its place"),
            DegradedStep::Stale => format!("gives what it answered {} ago", format_duration(*age)),
            DegradedStep::Default => "gives what the configuration says".to_owned(),
        });
        mark_degraded(cx, &mut reply, &degraded);
        reply.into()
    }
}

/// Says that this is given instead of the call's own answer: in the reply, in the log as a warning, and to observers.
pub(crate) fn mark_degraded(cx: &CallContext, reply: &mut Reply, degraded: &Degraded) {
    let Degraded {
        step, source, age, ..
    } = degraded;
    let errors: Vec<_> = degraded.errors.iter().map(ToString::to_string).collect();
    tracing::warn!(
        tool = %cx.tool().name(),
        correlation_id = %cx.correlation_id,
        step = step.as_str(),
        source = %source,
        age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
        "answered in another way, after {}",
        errors.join(", ")
    );
    cx.observers.tell(&Event::Degraded { cx, degraded });
    reply.add_meta(Degraded::META_KEY, degraded.record());
}

impl Drop for StandIn<'_> {
    fn drop(&mut self) {
        if let Some(own) = self.own.take() {
            self.cx.merge_fallback(own);
        }
    }
}

/// Why nothing may be given in the place of a failed call's answer, if nothing may.
fn bar(cx: &CallContext, error: &ToolError) -> Option<String> {
    let kind = error.kind();
    if !kind.degrades() {
        return Some(format!("`{kind}` is for whoever called"));
    }
    let may_have_run = cx.may_have_run() || error.may_have_run();
    may_have_run.then(|| format!("the tool may have run before it failed as `{kind}`"))
}

/// The part of the time that a tool may take while these steps stand behind; nothing if it may take all of it, or if there
/// is no end to it.
fn part(cx: &CallContext, behind: &[&FailureStep]) -> Option<Duration> {
    let left = cx.remaining()?;
    let is_tool = |step: &&FailureStep| matches!(step, FailureStep::Fallback(_));
    match behind {
        [] => None,
        _ if behind.iter().any(is_tool) => Some(left / 2),
        _ => Some(left - left / 10),
    }
}

/// What follows from how a stand-in's call ended.
fn stood(own: &CallContext, result: Result<Outcome, ToolError>, first: &Tool) -> Stood {
    let error = match result {
        Ok(Outcome::Reply(reply)) if reply.is_error => {
            ToolError::new(ErrorKind::UpstreamError, "the tool reports a failure")
        }
        Ok(Outcome::Reply(reply)) => match fits(first, &reply) {
            Ok(()) => return Stood::Answered(reply),
            Err(why) => {
                let message = format!("what `{}` answered {why}", own.tool().name());
                ToolError::new(ErrorKind::ResultInvalid, message)
            }
        },
        Ok(Outcome::Task(_)) => {
            let message = format!("`{}` works on, and nobody can wait for it", own.tool().name());
            ToolError::new(ErrorKind::OutcomeUnknown, message)
        }
        Ok(_) => ToolError::new(
            ErrorKind::MissingCapability,
            "the tool needs something from the caller first",
        ),
        Err(error) => error,
    };
    if own.may_have_run() || error.may_have_run() {
        Stood::Ended(error)
    } else {
        Stood::Failed(error)
    }
}

/// What the configuration gives, if it is what the tool could have answered.
fn given(cx: &CallContext, value: &RawJson) -> Result<Reply, String> {
    let reply = Reply::value(value.clone());
    fits(cx.tool(), &reply).map_err(|why| format!("it {why}"))?;
    Ok(reply)
}

/// Checks an answer against the output schema of a tool that did not give it, in words that follow what was answered.
fn fits(tool: &Tool, reply: &Reply) -> Result<(), String> {
    let Some(output) = tool.output() else {
        return Ok(());
    };
    let name = tool.name();
    let unfit = || format!("does not fit the output schema of `{name}`");
    let structured = reply.structured().ok_or_else(unfit)?;
    let value: Value = structured.to().map_err(|_| unfit())?;
    output.check(&value).map_err(|_| unfit())
}

/// The age of an answer by what a cache said of it.
fn age_of(said: &[(&'static str, RawJson)]) -> Duration {
    let ages = said.iter().filter_map(|(key, value)| {
        let is_told = [CacheLayer::META_KEY, Degraded::META_KEY].contains(key);
        value.get("age_ms").filter(|_| is_told)?.to::<u64>().ok()
    });
    Duration::from_millis(ages.max().unwrap_or_default())
}

/// The error of the tool that was called, with what became of the others.
fn told(error: ToolError, others: &[FailedStep]) -> ToolError {
    if others.is_empty() {
        return error;
    }
    let others: Vec<_> = others.iter().map(ToString::to_string).collect();
    let message = format!("{} (and in its place, {})", error.message(), others.join(", "));
    error.with_message(message)
}

/// Steps as people read them.
struct Shown<'a>(&'a [&'a FailureStep]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(", then ")?;
            }
            match step {
                FailureStep::Fallback(name) => write!(f, "`{name}`")?,
                FailureStep::Stale(age) => write!(f, "an answer no older than {}", format_duration(*age))?,
                FailureStep::Default(_) => f.write_str("what the configuration gives")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for FallbackLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Degrade")
            .field("share", &self.share)
            .finish_non_exhaustive()
    }
}
