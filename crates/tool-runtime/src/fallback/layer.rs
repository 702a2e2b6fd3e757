use std::{fmt, pin::pin, sync::Arc};

use tool_core::{
    CallContext, ErrorKind, FailedStep, FallbackOf, Health, HealthStatus, Invoke, Layer, NamedLayer, Outcome,
    Reentry, Target, ToolError, format_duration,
};

use super::run::{FallbackRun, time_share};
use crate::{CacheLayer, timeout::within};
use crate::{FailureStep, FallbackLadder};

/// Answers in place of a tool that failed. The tool's fallback ladder lists the steps, see [`FailureStep`]. The layer takes them
/// in order, and the first step with a reply counts. If none has one, the call ends with the first error.
///
/// Does nothing for a tool until its `Settings` contain a [`FallbackLadder`]. Stale replies come from the [`CacheLayer`] that it is
/// created with, which must be in the same stack. Fallback tools need [`FallbackLayer::with_reentry`].
///
/// # When
/// After failures of a kind that [degrades](ErrorKind::degrades), and never if a tool that must not run twice may have run
/// ([`CallContext::may_have_run`]). A reply in which the tool itself reports a failure is a reply. A call with an idempotency key
/// is made for its effect, and its result is stored under the key: it may get the reply of another tool, but no stale or default
/// one.
///
/// # Fallback tools
/// A fallback tool is called through [`Reentry`]: admitted, validated and limited as itself, with the same arguments, by the same
/// caller, under the same correlation id. Its call has no idempotency key, cannot ask for another round and becomes no task. A
/// tool that needs approval is skipped. Of several fallback tools in a row, those are tried last that [`Health`] reports as
/// unhealthy. No tool is tried twice for a call. The reply must satisfy the output schema of the tool that was called, and is
/// never cached as that tool's.
///
/// # Time
/// One deadline covers all steps: that of the call or, without one, the tool's call timeout. A tool before another tool has half
/// of the remaining time; one before a stale or default reply has nine tenths.
///
/// # Reporting
/// A reply of a step says so in its `_meta`, under [`Degraded::META_KEY`](tool_core::Degraded::META_KEY). So do a warning in the
/// log and [`Event::Degraded`](tool_core::Event::Degraded).
///
/// # Order
/// Outside [`CacheLayer`], so that no fallback's reply is cached as the tool's own. Inside the layers that use keys of a call, so
/// that a tool and its fallback never both run under one idempotency key.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use tool_core::{Invoke, Layers, Reentry};
/// use tool_runtime::{CacheLayer, FallbackLayer};
///
/// # fn stack<S: Invoke + 'static>(reentry: Arc<dyn Reentry>, executor: S) {
/// let cache = CacheLayer::new(64 << 20);
/// let stack = Layers::outermost(FallbackLayer::new(cache.clone()).with_reentry(reentry))
///     .then(cache)
///     .around(executor);
/// # }
/// ```
#[derive(Clone)]
pub struct FallbackLayer {
    pub(super) cache: CacheLayer,
    pub(super) reentry: Option<Arc<dyn Reentry>>,
    health: Option<Arc<dyn Health>>,
}

/// Service of [`FallbackLayer`].
#[derive(Debug, Clone)]
pub struct Fallback<S> {
    settings: FallbackLayer,
    inner: S,
}

impl FallbackLayer {
    /// Creates a layer that takes stale replies from this cache.
    #[must_use]
    pub fn new(cache: CacheLayer) -> Self {
        Self {
            cache,
            reentry: None,
            health: None,
        }
    }

    /// Sets the way to call fallback tools. Without it, steps with tools are skipped.
    #[must_use]
    pub fn with_reentry(mut self, reentry: Arc<dyn Reentry>) -> Self {
        self.reentry = Some(reentry);
        self
    }

    /// Sets the source of health reports. Unhealthy fallback tools are then tried last.
    #[must_use]
    pub fn with_health(mut self, health: Arc<dyn Health>) -> Self {
        self.health = Some(health);
        self
    }

    /// Returns the steps in the order in which they are taken: of consecutive fallback tools, the unhealthy ones last.
    fn order<'a>(&self, ladder: &'a [FailureStep]) -> Vec<&'a FailureStep> {
        let is_unhealthy = |step: &FailureStep| match (step, &self.health) {
            (FailureStep::Fallback(name), Some(health)) => {
                health.tool(name).status == HealthStatus::Unhealthy
            }
            _ => false,
        };
        let are_tools = |one: &FailureStep, other: &FailureStep| {
            matches!((one, other), (FailureStep::Fallback(_), FailureStep::Fallback(_)))
        };
        let mut steps = Vec::with_capacity(ladder.len());
        for tools in ladder.chunk_by(are_tools) {
            let (unhealthy, others): (Vec<_>, Vec<_>) = tools.iter().partition(|step| is_unhealthy(step));
            steps.extend(others.into_iter().chain(unhealthy));
        }
        steps
    }
}

impl NamedLayer for FallbackLayer {
    const NAME: &'static str = "fallback";
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
            cx.explain(FallbackLayer::NAME, || {
                format!("if it fails: {}", StepList(&ladder))
            });
            return self.inner.invoke(cx).await;
        }
        let deadline = cx.deadline;
        if deadline.is_none() {
            // One deadline covers all steps, also where no outer layer has set it.
            cx.tighten_deadline(cx.tool().settings().call_timeout);
        }
        // Boxed, so that calls without a ladder do not carry the size of its future.
        let result = Box::pin(self.call_with_ladder(cx, &ladder)).await;
        cx.deadline = deadline;
        result
    }
}

impl<S: Invoke> Fallback<S> {
    /// Makes the call, and takes the steps of the ladder if it fails.
    async fn call_with_ladder(
        &self,
        cx: &mut CallContext,
        ladder: &[FailureStep],
    ) -> Result<Outcome, ToolError> {
        let meta = cx.extras.meta.clone();
        let error = match self.call_primary(cx, ladder).await {
            Err(error) => error,
            answered => return answered,
        };
        if let Some(reason) = block_reason(cx, &error) {
            cx.explain(FallbackLayer::NAME, || format!("no fallback: {reason}"));
            return Err(cx.mark(error));
        }
        let name = cx.tool().name().clone();
        let run = FallbackRun {
            settings: &self.settings,
            steps: self.settings.order(ladder),
            fallback_of: cx
                .fallback_of
                .clone()
                .unwrap_or_else(|| FallbackOf::new(name.clone(), cx.extras.idempotency_key.is_some())),
            meta,
            errors: vec![FailedStep::new(Some(name), error.kind())],
        };
        run.run(cx, error).await
    }

    /// Makes the call within its share of the time.
    async fn call_primary(&self, cx: &mut CallContext, ladder: &[FailureStep]) -> Result<Outcome, ToolError> {
        let steps: Vec<_> = ladder.iter().collect();
        let Some(limit) = time_share(cx, &steps) else {
            return self.inner.invoke(cx).await;
        };
        let (deadline, ask) = (cx.deadline, cx.origin.ask.clone());
        cx.tighten_deadline(limit);
        let ended = {
            let call = pin!(self.inner.invoke(cx));
            within(limit, ask.as_ref(), call).await
        };
        cx.deadline = deadline;
        ended.unwrap_or_else(|| {
            let message = format!(
                "no answer within the {} before its fallbacks",
                format_duration(limit)
            );
            Err(cx.unanswered(ErrorKind::Timeout, message))
        })
    }
}

/// Returns the reason for which no fallback may answer a failed call, or `None` if one may.
fn block_reason(cx: &CallContext, error: &ToolError) -> Option<String> {
    let kind = error.kind();
    if !kind.degrades() {
        return Some(format!("`{kind}` is for the caller"));
    }
    let may_have_run = cx.may_have_run() || error.may_have_run();
    may_have_run.then(|| format!("the tool may have run before it failed as `{kind}`"))
}

/// Steps of a ladder as text for people.
struct StepList<'a>(&'a [FailureStep]);

impl fmt::Display for StepList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(", then ")?;
            }
            match step {
                FailureStep::Fallback(name) => write!(f, "`{name}`")?,
                FailureStep::Stale(age) => write!(f, "a stale reply of at most {}", format_duration(*age))?,
                FailureStep::Default(_) => f.write_str("the default of the configuration")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for FallbackLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FallbackLayer")
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}
