//! The order of layers, and the only place that knows it.

use std::sync::Arc;

use tool_chaos::ChaosLayer;
use tool_core::{CallContext, DynInvoke, Invoke, Layers, Outcome, PendingCall, Target, ToolError};
use tool_observe::{WatchAttemptLayer, WatchLayer};
use tool_policy::{
    AdmissionLayer, ApprovalLayer, BreakerLayer, BreakerPeekLayer, CredentialRefreshLayer, ErrorPolicyLayer,
    PartialResultsLayer, QuotaLayer, RateLimitLayer, RedactionLayer, ResultValidationLayer, ValidationLayer,
};
use tool_runtime::{
    CacheLayer, ConcurrencyLimitLayer, DeadlineLayer, FallbackLayer, HedgeLayer, IdempotencyLayer,
    RetryLayer, TimeoutLayer,
};

/// The names under which the layers of the stack explain what they decided about a call, in their order, and that of the
/// executor within them. A breaker is asked twice, and speaks under the same name.
pub const LAYERS: [&str; 22] = [
    "watch",
    "deadline",
    "admit",
    "validate",
    "idempotency",
    "allowance",
    "approve",
    "degrade",
    "cache",
    "retry",
    "credentials",
    "hedge",
    "rate limit",
    "concurrency",
    "breaker",
    "attempt",
    "timeout",
    "redact",
    "validate result",
    "partial",
    "chaos",
    "executor",
];

/// The configured layers, outermost first. Those without settings are in [`stack`] alone.
#[derive(Debug)]
pub(crate) struct StackLayers {
    pub(crate) surface: ErrorPolicyLayer,
    pub(crate) watch: WatchLayer,
    pub(crate) admit: AdmissionLayer,
    pub(crate) idempotency: IdempotencyLayer,
    pub(crate) allowance: QuotaLayer,
    pub(crate) approve: ApprovalLayer,
    pub(crate) degrade: FallbackLayer,
    pub(crate) share: CacheLayer,
    pub(crate) retry: RetryLayer,
    pub(crate) hedge: HedgeLayer,
    pub(crate) rate_limit: RateLimitLayer,
    pub(crate) concurrency: ConcurrencyLimitLayer,
    pub(crate) breaker: BreakerLayer,
    pub(crate) watch_attempt: WatchAttemptLayer,
    pub(crate) redact: RedactionLayer,
    pub(crate) chaos: ChaosLayer,
}

/// The stack that every call goes down, around what runs its tool.
///
/// Places of layers that are not built yet are marked in comments.
pub(crate) fn stack(layers: StackLayers) -> Arc<dyn DynInvoke> {
    // Outermost: whatever watches the call has its errors as they were, and the caller has them in words.
    let stack = Layers::outermost(layers.surface)
        // Outside of all others, so that nothing happens to a call unseen: a refusal is watched like a result.
        .then(layers.watch)
        // Audit: below Watch, which gives it the correlation id; above the deadline, so that a call that ran out of
        // time has its record.
        //
        // Above everything that can wait, so that queueing and fallbacks count as well.
        .then(DeadlineLayer)
        // Outside everything that shares results, or a refused caller would read another's answer; before the
        // arguments are looked at, or a refusal would tell what the tool takes.
        .then(layers.admit)
        // Before whatever keys on arguments (idempotency, approval, cache): only valid ones make keys.
        .then(ValidationLayer)
        // Inside Validate, since only valid arguments make keys; outside Degrade, so that primary and fallback never both run
        // under one key, and outside Approve, so that nobody is asked about what has run already.
        .then(layers.idempotency)
        // Outside approval, so that nobody is asked about a call beyond its limits; inside Idempotency, so that a call which
        // is answered by its key costs nothing.
        .then(layers.allowance)
        // A person decides on valid arguments, once for all attempts, and never on what another caller's call came to.
        .then(layers.approve)
        // Outside Share, so that a fallback's answer is never kept as the primary's; inside Approve, which was asked about the
        // primary alone: a fallback goes through all of this as itself.
        .then(layers.degrade)
        // Inside admission, or a refused caller would read another's answer; outside Retry, so that all who wait for one
        // result share its attempts as well.
        .then(layers.share)
        // Inside all of those, so that what they share or replace is a call's end; outside what guards a single attempt.
        .then(layers.retry)
        // Inside Retry, which does not try again what other credentials do not help; outside the guards of an attempt, since
        // the one with other credentials is an attempt as well.
        .then(CredentialRefreshLayer)
        // Inside Retry, so that a hedged attempt is tried again as one, and inside the layer of credentials, which are
        // renewed once for both; outside the guards of an attempt, since a hedge is one, with a place of its own.
        .then(layers.hedge)
        // Before the queues, to fail fast.
        .then(BreakerPeekLayer)
        // Inside Retry: the upstream is asked once for each attempt, so an attempt counts, not a call. Before Concurrency:
        // what is refused anyway takes no place in a queue.
        .then(layers.rate_limit)
        // Inside Retry as well, so that a call that waits before another attempt holds no place; outside the attempt's
        // time limit, which is for the tool alone.
        .then(layers.concurrency)
        // Right before dispatch, so that a probe is not lost in a queue.
        .then(layers.breaker)
        // Intent: the durable record before a dispatch, the last thing before something can happen.
        //
        // Inside whatever repeats an attempt, outside whatever bounds one.
        .then(layers.watch_attempt)
        // Bounds the tool alone: everything above may take its time within the deadline.
        .then(TimeoutLayer)
        // Before anyone above sees, keeps or logs the result, and around the words of what checks it.
        .then(layers.redact)
        // Inside whatever judges attempts, so that an invalid result is a failed one.
        .then(ResultValidationLayer)
        // Inside both, so that a part that is not wanted is a failed attempt, and told in words that say so.
        .then(PartialResultsLayer)
        // In the place of the world: every layer meets faults on purpose as it would meet real ones.
        .then(layers.chaos);
    Arc::new(stack.around(Run))
}

/// Runs the tool that the call is addressed to.
pub(crate) struct Run;

impl Invoke for Run {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        if cx.is_dry_run() {
            // Boxed, so that calls do not carry the room for it.
            return Box::pin(end_of_dry_run(cx)).await;
        }
        let executor = match &cx.target {
            // By what made it, whatever stands for its tool now.
            Target::Task { task, .. } => task.runner.clone(),
            _ => cx.tool().executor().clone(),
        };
        let result = executor.invoke_boxed(cx).await;
        let tool = cx.tool().clone();
        cx.explain("executor", || {
            let kind = &tool.descriptor().executor.kind;
            match &result {
                Ok(Outcome::Reply(reply)) => format!("`{kind}` answered with {} bytes", reply.raw().len()),
                Ok(_) => format!("`{kind}` is not finished"),
                Err(error) => format!("`{kind}` failed: {}", error.kind()),
            }
        });
        result
    }
}

/// Ends a dry run: with the request that would be sent, if what runs the tool can tell it.
async fn end_of_dry_run(cx: &mut CallContext) -> Result<Outcome, ToolError> {
    let kind = cx.tool().descriptor().executor.kind.clone();
    let preview = match &cx.target {
        Target::Task { .. } => None,
        _ => cx.tool().executor().clone().preview_boxed(cx).await?,
    };
    cx.explain("executor", || format!("`{kind}` would run now"));
    Ok(Outcome::Pending(Box::new(PendingCall {
        handle: "dry-run".into(),
        reason: "a dry run sends nothing".to_owned(),
        detail: preview.map(|preview| preview.to_json()),
    })))
}
