//! Order of the layers. Nothing else defines it.

use std::sync::{Arc, LazyLock};

use tool_chaos::ChaosLayer;
use tool_core::{
    CallContext, DynInvoke, Invoke, Layer, Layers, NamedLayer, Outcome, PendingCall, Target, TargetBackend,
    ToolError,
};
use tool_observe::{WatchAttemptLayer, WatchLayer};
use tool_policy::{
    AdmissionLayer, ApprovalLayer, ArgumentSizeLayer, BreakerLayer, BreakerPeekLayer, CredentialRefreshLayer,
    ErrorPolicyLayer, PartialResultsLayer, QuotaLayer, RateLimitLayer, RedactionLayer, ResultValidationLayer,
    ValidationLayer,
};
use tool_runtime::{
    CacheLayer, ConcurrencyLimitLayer, DeadlineLayer, FallbackLayer, HedgeLayer, IdempotencyLayer,
    IntentLayer, RetryLayer, TaskLayer, TimeoutLayer,
};

use crate::host::layers::{AttemptLayers, CallLayers};

/// Names under which the layers explain their decisions, outermost first, followed by the name of the executor. Two of them,
/// `call layers` and `attempt layers`, are the [places](crate::Place) for layers of the host program, which explain their
/// decisions under names of their own.
pub static LAYERS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let mut names = names_of(layers);
    names.push(EXECUTOR);
    names
});

/// Name under which the executor explains its result.
const EXECUTOR: &str = "executor";

/// Configured layers. Layers without settings appear in [`layers`] alone.
#[derive(Debug)]
pub(crate) struct StackLayers {
    pub(crate) error_policy: ErrorPolicyLayer,
    pub(crate) watch: WatchLayer,
    pub(crate) admission: AdmissionLayer,
    pub(crate) call_layers: CallLayers,
    pub(crate) idempotency: IdempotencyLayer,
    pub(crate) quota: QuotaLayer,
    pub(crate) approval: ApprovalLayer,
    pub(crate) fallback: FallbackLayer,
    pub(crate) cache: CacheLayer,
    pub(crate) retry: RetryLayer,
    pub(crate) hedge: HedgeLayer,
    pub(crate) rate_limit: RateLimitLayer,
    pub(crate) concurrency_limit: ConcurrencyLimitLayer,
    pub(crate) breaker: BreakerLayer,
    pub(crate) intent: IntentLayer,
    pub(crate) watch_attempt: WatchAttemptLayer,
    pub(crate) redaction: RedactionLayer,
    pub(crate) attempt_layers: AttemptLayers,
    pub(crate) chaos: ChaosLayer,
}

/// Builds the stack that every call passes, around the executor of its tool.
pub(crate) fn stack(configured: StackLayers) -> Arc<dyn DynInvoke> {
    Arc::new(layers(configured).around(Run))
}

/// Returns the names of the layers that `order` nests, without building them.
fn names_of<L: NamedLayer>(order: fn(StackLayers) -> Layers<L>) -> Vec<&'static str> {
    let _ = order;
    Layers::<L>::names()
}

/// Nests the layers, outermost first.
fn layers(
    layers: StackLayers,
) -> Layers<impl NamedLayer + Layer<Run, Invoke: Invoke + Send + Sync + 'static>> {
    // Error policy: rewrites errors for callers and raises alerts. Outermost, so that observers see errors unchanged.
    Layers::outermost(layers.error_policy)
        // Watch: reports the call to observers. Outside of all others, so that a refusal is observed like a result.
        .then(layers.watch)
        // Deadline: ends the call in time. Outside of everything that can wait, so that queueing and fallbacks count.
        .then(DeadlineLayer)
        // Admission: refuses callers without permission. Outside of everything that shares results, since a refused caller
        // must not read another's; before validation, whose errors describe what the tool accepts.
        .then(layers.admission)
        // Argument size: refuses large arguments. Inside of admission, like everything that reads arguments; before validation,
        // which parses them.
        .then(ArgumentSizeLayer)
        // Validation: checks the arguments. Before idempotency, approval and cache, whose keys contain the arguments.
        .then(ValidationLayer)
        // Call layers: those of the host program at `Place::Call`. Inside of admission and validation, so that they see valid
        // calls of permitted callers; outside of everything that answers, delays or repeats a call, so that they see each call
        // once, also one that is answered from the ledger or the cache.
        .then(layers.call_layers)
        // Idempotency: runs a tool once for all calls with one key. Outside of fallbacks, so that a tool and its fallback
        // never both run under one key; outside of approval, so that nobody is asked about a call that has run.
        .then(layers.idempotency)
        // Quota: limits calls and costs of conversations. Outside of approval, so that nobody is asked about a call beyond
        // its quota; inside of idempotency, so that a replayed result costs nothing.
        .then(layers.quota)
        // Approval: waits for a person's decision. Inside of validation, since people decide on valid arguments; outside of
        // retries and of shared results, so that one decision covers all attempts of this call and of no other.
        .then(layers.approval)
        // Fallback: answers instead of a tool that failed. Outside of the cache, so that a fallback's result is never cached
        // as the tool's; inside of approval, which is for this tool alone. A fallback passes the whole stack as itself.
        .then(layers.fallback)
        // Cache: shares results and concurrent executions. Inside of admission, since a refused caller must not read
        // another's result; outside of retries, so that all waiting calls share the attempts.
        .then(layers.cache)
        // Retry: attempts failed calls again. Inside of the cache and of fallbacks, which use the end of a call; outside of
        // the guards of single attempts.
        .then(layers.retry)
        // Credential refresh: renews rejected credentials and attempts again, once. Inside of retries, which do not repeat
        // such failures; outside of the guards of single attempts, since the second one is an attempt as well.
        .then(CredentialRefreshLayer)
        // Hedge: sends a second attempt when the first is slow. Inside of retries and credential refresh, which happen once
        // for both; outside of the guards of single attempts, since a hedge is one, with a permit of its own.
        .then(layers.hedge)
        // Breaker peek: fails fast while the breaker is open. Before the queues.
        .then(BreakerPeekLayer::for_breaker(&layers.breaker))
        // Rate limit: limits attempts by time. Inside of retries, since the backend counts attempts; before the concurrency
        // limit, so that a rejected attempt takes no place in a queue.
        .then(layers.rate_limit)
        // Concurrency limit: bounds attempts that run at once. Inside of retries, so that a pause holds no permit; outside of
        // the timeout, which is for the tool alone.
        .then(layers.concurrency_limit)
        // Breaker: stops attempts to a failing backend. Immediately before dispatch, so that no probe is lost in a queue.
        .then(layers.breaker)
        // Intent: records a call that must not run twice, before it is sent. Inside of whatever may delay or refuse an attempt,
        // so that an intent is a call that is sent next; outside of the attempt, which is not made without it.
        .then(layers.intent)
        // Attempt: reports the attempt to observers. Inside of whatever repeats attempts, outside of whatever limits one.
        .then(layers.watch_attempt)
        // Timeout: ends one attempt. Limits the tool alone: the layers above may wait as long as the deadline allows.
        .then(TimeoutLayer)
        // Redaction: hides secrets. Before any outer layer sees, stores or logs a result, and around the layers that check
        // it, whose errors may quote it.
        .then(layers.redaction)
        // Result validation: checks structured results. Inside of retries and breakers, so that an invalid result is a
        // failed attempt.
        .then(ResultValidationLayer)
        // Partial results: refuses or marks incomplete results. Inside of result validation, so that an unwanted partial
        // result is reported as such.
        .then(PartialResultsLayer)
        // Attempt layers: those of the host program at `Place::Attempt`. Inside of the timeout, redaction and the layers that
        // check results, so that whatever they add is limited, hidden and checked as well; outside of chaos, so that they meet
        // its faults.
        .then(layers.attempt_layers)
        // Chaos: injects faults. Inside of all layers that act on results, so that they meet faults like real ones.
        .then(layers.chaos)
        // Task: runs a tool in the background. Innermost, so that looks at the task pass redaction and result checks.
        .then(TaskLayer)
}

/// Innermost service: runs the target of the call.
pub(crate) struct Run;

impl Invoke for Run {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        if cx.is_dry_run() {
            // Boxed, so that the future of a live call has no room for it.
            return Box::pin(end_of_dry_run(cx)).await;
        }
        let backend = TargetBackend::for_call(cx).clone();
        let result = backend.invoke_boxed(cx).await;
        let tool = cx.tool().clone();
        cx.explain(EXECUTOR, || {
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

/// Ends a dry run with the request that would be sent, if the backend can preview it.
async fn end_of_dry_run(cx: &mut CallContext) -> Result<Outcome, ToolError> {
    let kind = cx.tool().descriptor().executor.kind.clone();
    let preview = match &cx.target {
        Target::Task { .. } => None,
        _ => cx.tool().executor().clone().preview_boxed(cx).await?,
    };
    cx.explain(EXECUTOR, || format!("`{kind}` would run now"));
    let pending = PendingCall::new("dry-run", "a dry run sends nothing");
    let pending = pending.with_detail(preview.map(|preview| preview.to_json()));
    Ok(Outcome::Pending(Box::new(pending)))
}
