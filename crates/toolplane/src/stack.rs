//! The order of layers, and the only place that knows it.

use std::sync::Arc;

use tool_chaos::Chaos;
use tool_core::{
    CallContext, DynInvoke, Gate, Health, Invoke, Jitter, Layers, Ledger, Observers, Outcome, PendingCall,
    Target, ToolError,
};
use tool_observe::{Tracer, Watch, WatchAttempt};
use tool_policy::{
    Admit, Allowance, Approve, Breaker, BreakerPeek, Credentials, Partial, RateLimit, Redact, Redactor,
    SharedRules, Surface, Validate, ValidateResult,
};
use tool_runtime::{Concurrency, Deadline, Degrade, Hedge, Idempotency, Retry, Share, Timeout};

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

/// Who watches calls.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    pub(crate) observers: Observers,
    pub(crate) tracer: Option<Tracer>,
}

/// The layers that remember calls, and faults on purpose, ready to be put into a stack.
#[derive(Debug)]
pub(crate) struct Guards {
    idempotency: Idempotency,
    allowance: Allowance,
    approve: Approve,
    degrade: Degrade,
    share: Share,
    rate_limit: RateLimit,
    concurrency: Concurrency,
    chaos: Chaos,
    redactor: Redactor,
    retry: Retry,
    hedge: Hedge,
    breaker: Breaker,
    surface: Surface,
    credentials: Credentials,
}

impl Guards {
    /// Those of calls, which are remembered in this ledger.
    pub(crate) fn new(ledger: Arc<dyn Ledger>, allowance: Allowance, approve: Approve) -> Self {
        let share = Share::new(0);
        Self {
            idempotency: Idempotency::new(ledger),
            allowance,
            approve,
            degrade: Degrade::new(share.clone()),
            share,
            rate_limit: RateLimit::new(),
            concurrency: Concurrency::new(),
            chaos: Chaos::default(),
            redactor: Redactor::default(),
            surface: Surface::default(),
            credentials: Credentials,
            retry: Retry::default(),
            hedge: Hedge::default(),
            breaker: Breaker::default(),
        }
    }

    /// The same, with pauses that are the same every time.
    pub(crate) fn with_seed(self, seed: u64) -> Self {
        Self {
            retry: Retry::with_jitter(Jitter::seeded(seed)),
            breaker: Breaker::with_jitter(Jitter::seeded(!seed)),
            ..self
        }
    }

    /// The same, hiding what is known there.
    pub(crate) fn with_redactor(self, redactor: Redactor) -> Self {
        Self { redactor, ..self }
    }

    /// The same, with these faults on purpose.
    pub(crate) fn with_chaos(self, chaos: Chaos) -> Self {
        Self { chaos, ..self }
    }

    /// The same, which keep so many bytes of answers.
    pub(crate) fn keeping(self, cache_bytes: usize) -> Self {
        let share = Share::new(u64::try_from(cache_bytes).unwrap_or(u64::MAX));
        Self {
            degrade: self.degrade.keeping(share.clone()),
            share,
            ..self
        }
    }

    /// What keeps answers.
    pub(crate) fn share(&self) -> &Share {
        &self.share
    }

    /// The same, which call other tools through this in the place of those that fail, the unhealthy ones last, and hedge by
    /// how long tools usually take.
    pub(crate) fn standing_in(self, gate: Arc<dyn Gate>, health: Arc<dyn Health>) -> Self {
        Self {
            degrade: self.degrade.gate(gate).health(health.clone()),
            hedge: Hedge::new(health),
            ..self
        }
    }

    /// The same, with these words for errors.
    pub(crate) fn telling(self, surface: Surface) -> Self {
        Self { surface, ..self }
    }
}

/// The stack that every call goes down, around what runs its tool.
///
/// Layers that are not built yet stand here as comments, at their places.
pub(crate) fn stack(watchers: Watchers, rules: SharedRules, guards: Guards) -> Arc<dyn DynInvoke> {
    let Watchers { observers, tracer } = watchers;
    // Outermost: whatever watches the call has its errors as they were, and the caller has them in words.
    let layers = Layers::outermost(guards.surface)
        // Outside of all others, so that nothing happens to a call unseen: a refusal is watched like a result.
        .then(Watch::new(observers.clone()).tracer(tracer.clone()))
        // Audit: below Watch, which gives it the correlation id; above the deadline, so that a call that ran out of
        // time has its record.
        //
        // Above everything that can wait, so that queueing and fallbacks count as well.
        .then(Deadline)
        // Outside everything that shares results, or a refused caller would read another's answer; before the
        // arguments are looked at, or a refusal would tell what the tool takes.
        .then(Admit::new(rules))
        // Before whatever keys on arguments (idempotency, approval, cache): only valid ones make keys.
        .then(Validate)
        // Inside Validate, since only valid arguments make keys; outside Degrade, so that primary and fallback never both run
        // under one key, and outside Approve, so that nobody is asked about what has run already.
        .then(guards.idempotency)
        // Outside approval, so that nobody is asked about a call beyond its limits; inside Idempotency, so that a call which
        // is answered by its key costs nothing.
        .then(guards.allowance)
        // A person decides on valid arguments, once for all attempts, and never on what another caller's call came to.
        .then(guards.approve)
        // Outside Share, so that a fallback's answer is never kept as the primary's; inside Approve, which was asked about the
        // primary alone: a fallback goes through all of this as itself.
        .then(guards.degrade)
        // Inside admission, or a refused caller would read another's answer; outside Retry, so that all who wait for one
        // result share its attempts as well.
        .then(guards.share)
        // Inside all of those, so that what they share or replace is a call's end; outside what guards a single attempt.
        .then(guards.retry)
        // Inside Retry, which does not try again what other credentials do not help; outside the guards of an attempt, since
        // the one with other credentials is an attempt as well.
        .then(guards.credentials)
        // Inside Retry, so that a hedged attempt is tried again as one, and inside the layer of credentials, which are
        // renewed once for both; outside the guards of an attempt, since a hedge is one, with a place of its own.
        .then(guards.hedge)
        // Before the queues, to fail fast.
        .then(BreakerPeek)
        // Inside Retry: the upstream is asked once for each attempt, so an attempt counts, not a call. Before Concurrency:
        // what is refused anyway takes no place in a queue.
        .then(guards.rate_limit)
        // Inside Retry as well, so that a call that waits before another attempt holds no place; outside the attempt's
        // time limit, which is for the tool alone.
        .then(guards.concurrency)
        // Right before dispatch, so that a probe is not lost in a queue.
        .then(guards.breaker)
        // Intent: the durable record before a dispatch, the last thing before something can happen.
        //
        // Inside whatever repeats an attempt, outside whatever bounds one.
        .then(WatchAttempt::new(observers).tracer(tracer))
        // Bounds the tool alone: everything above may take its time within the deadline.
        .then(Timeout)
        // Before anyone above sees, keeps or logs the result, and around the words of what checks it.
        .then(Redact::new(guards.redactor))
        // Inside whatever judges attempts, so that an invalid result is a failed one.
        .then(ValidateResult)
        // Inside both, so that a part that is not wanted is a failed attempt, and told in words that say so.
        .then(Partial)
        // In the place of the world: every layer meets faults on purpose as it would meet real ones.
        .then(guards.chaos);
    Arc::new(layers.around(Run))
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
        cx.note("executor", || {
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
    cx.note("executor", || format!("`{kind}` would run now"));
    Ok(Outcome::Pending(Box::new(PendingCall {
        handle: "dry-run".into(),
        reason: "a dry run sends nothing".to_owned(),
        detail: preview.map(|preview| preview.to_json()),
    })))
}
