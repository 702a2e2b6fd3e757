use std::{
    fmt,
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::{Instant as Timer, sleep};
use tool_core::{
    Asker, CallContext, Event, Health, Instant, Invoke, Layer, NamedLayer, Outcome, Target, TaskMode,
    ToolError, format_duration,
};

use crate::{
    HedgeAfter, HedgePercent, HedgeSettings, RetryBudget, RetrySettings,
    retry::{budget_of, is_repeated, mark_repeated},
};

/// Sends a second, hedged attempt if the first is slow. The first reply counts, and the other attempts are cancelled. Few slow
/// attempts then cause few slow calls, for a little more load (Dean and Barroso, "The Tail at Scale", 2013).
///
/// Does nothing for a tool until its `Settings` contain [`HedgeSettings`]. A delay by percentile needs a source of attempt
/// durations, such as `HealthTracker` of `tool-observe`: see [`HedgeLayer::new`].
///
/// # Which calls
/// Calls of tools that may run twice by their operator's declaration ([`CallContext::may_run_twice`]), whatever the settings say.
/// The layer does not hedge a repeated attempt, a call that continues an earlier round or requests a task, or a call in which
/// the caller was asked a question.
///
/// # Cost
/// A hedge is spent from the upstream's [`RetryBudget`], as a retry is: both together are a tenth of its calls, or one a second. It
/// waits for no permit: if none is free, it is not sent. An upstream that is slow because of its load thus gets no more load.
///
/// # What ends a call
/// A reply of any attempt, even if the tool reports a failure in it. The failure of a hedge is dropped. If the first attempt
/// fails with a transient error, its hedges may still finish; if all of them fail, the first attempt's failure counts. A hedge
/// can ask the caller no question and reports no progress.
///
/// # Cancellation
/// Dropping the call drops all of its attempts.
///
/// # Order
/// Inside retries, so that a hedged attempt is retried as one. Outside the layers that guard a single attempt, since a hedge is an
/// attempt with a permit, a breaker and a time limit of its own.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use tool_core::{Health, Layers};
/// use tool_runtime::{HedgeLayer, RetryLayer};
///
/// # fn stack<S>(health: Arc<dyn Health>, executor: S) {
/// let stack = Layers::outermost(RetryLayer::default())
///     .then(HedgeLayer::new(health))
///     .around(executor);
/// # }
/// ```
#[derive(Clone, Default)]
pub struct HedgeLayer {
    health: Option<Arc<dyn Health>>,
}

/// Service of [`HedgeLayer`].
#[derive(Debug, Clone)]
pub struct Hedge<S> {
    settings: HedgeLayer,
    inner: S,
}

/// Cached percentile of a tool's attempt durations, with the time at which it was read.
#[derive(Default)]
struct CachedPercentile(Mutex<Option<(Instant, Option<Duration>)>>);

/// Settings and state of one hedged attempt.
struct HedgePlan {
    settings: HedgeSettings,
    delay: Duration,
    budget: Arc<RetryBudget>,
    asker: Option<Asker>,
}

/// Result of a race between the first attempt and its hedges.
struct RaceResult {
    result: Result<Outcome, ToolError>,
    /// Index of the hedge that answered first.
    winner: Option<usize>,
    n_hedges: usize,
    /// Reason for which no further hedge was sent.
    stop: Option<&'static str>,
}

/// Time for which a percentile is cached.
const PERCENTILE_TTL: Duration = Duration::from_secs(1);
/// Minimum number of attempts for a meaningful percentile.
const MIN_CALLS: u64 = 20;
/// Minimum delay of a hedge, whatever the percentile: an earlier one would be sent just before the reply.
const MIN_DELAY: Duration = Duration::from_millis(1);

impl HedgeLayer {
    /// Creates a layer that reads percentiles from this. The default layer knows no percentiles.
    #[must_use]
    pub fn new(health: Arc<dyn Health>) -> Self {
        Self { health: Some(health) }
    }

    /// Returns the delay before a hedge.
    fn delay(&self, cx: &CallContext, settings: HedgeSettings) -> Duration {
        match settings.after {
            HedgeAfter::Time(after) => after,
            HedgeAfter::Percentile { percent, at_first } => self.percentile(cx, percent).unwrap_or(at_first),
        }
    }

    /// Returns the percentile of the tool's recent attempt durations, or `None` while too few are known.
    fn percentile(&self, cx: &CallContext, percent: HedgePercent) -> Option<Duration> {
        let health = self.health.as_ref()?;
        let cell = cx.tool().state().get_or_init(CachedPercentile::default);
        let now = cx.clock.now();
        let mut cached = cell.0.lock();
        if let Some((at, percentile)) = *cached
            && now.since(at) < PERCENTILE_TTL
        {
            return percentile;
        }
        let report = health.tool(cx.tool().name());
        let took = match percent {
            HedgePercent::P95 => report.p95,
            HedgePercent::P99 => report.p99,
        };
        // The percentile is an estimate. If all attempts take equally long, the delay must not be shorter.
        let delay = (took + took / 10).max(MIN_DELAY);
        let percentile = (report.n_calls >= MIN_CALLS).then_some(delay);
        *cached = Some((now, percentile));
        percentile
    }
}

impl NamedLayer for HedgeLayer {
    const NAME: &'static str = "hedge";
}

impl<S> Layer<S> for HedgeLayer {
    type Invoke = Hedge<S>;

    fn layer(self, inner: S) -> Hedge<S> {
        Hedge {
            settings: self,
            inner,
        }
    }
}

impl<S: Invoke> Invoke for Hedge<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let Some(settings) = cx.tool().settings().get::<HedgeSettings>().copied() else {
            return self.inner.invoke(cx).await;
        };
        if let Some(reason) = skip_reason(cx) {
            cx.explain(HedgeLayer::NAME, || format!("not hedged: {reason}"));
            return self.inner.invoke(cx).await;
        }
        // Boxed, so that calls without hedges do not carry the size of its future.
        Box::pin(self.invoke_hedged(cx, settings)).await
    }
}

impl<S: Invoke> Hedge<S> {
    async fn invoke_hedged(
        &self,
        cx: &mut CallContext,
        settings: HedgeSettings,
    ) -> Result<Outcome, ToolError> {
        // Only a layer outside of this one has started an attempt: if that is the retry layer, it has recorded the call.
        let is_recorded = cx.attempt > 0 && cx.tool().settings().get::<RetrySettings>().is_some();
        if cx.attempt == 0 {
            cx.next_attempt();
        }
        let plan = HedgePlan {
            delay: self.settings.delay(cx, settings),
            settings,
            budget: budget_of(cx),
            asker: cx.origin.ask.clone(),
        };
        if !is_recorded {
            plan.budget.deposit(cx.clock.now());
        }
        // Forked before the first attempt borrows the context.
        let mut hedges: Vec<_> = (1..=settings.max).map(|number| fork_hedge(cx, number)).collect();
        let race = self.race(cx, &mut hedges, &plan).await;
        hedges.truncate(race.n_hedges);
        let winner = race.winner.map(|winner| hedges.swap_remove(winner));
        for loser in hedges {
            cx.merge_hedge(loser);
        }
        if let Some(winner) = winner {
            cx.merge_fork(winner);
            cx.observers.emit(&Event::hedge_won(cx));
        }
        cx.explain(HedgeLayer::NAME, || race.describe(plan.delay));
        race.result
    }

    /// Runs the first attempt, and its hedges after the delay, until one of them has a reply or all have failed.
    async fn race(&self, cx: &mut CallContext, hedges: &mut [CallContext], plan: &HedgePlan) -> RaceResult {
        let clock = cx.clock.clone();
        let mut first = pin!(self.inner.invoke(cx));
        let mut failure = None;
        let mut unsent = hedges.iter_mut();
        let mut running = Vec::new();
        let (mut n_hedges, mut stop) = (0, None);
        let mut timer = pin!(sleep(plan.delay));
        let (winner, result) = loop {
            let has_no_hedge = running.is_empty();
            tokio::select! {
                biased;
                result = &mut first, if failure.is_none() => match result {
                    Err(error) if error.kind().is_retryable() && !has_no_hedge => failure = Some(error),
                    result => break (None, result),
                },
                (number, result) = first_ready(&mut running), if !has_no_hedge => match result {
                    Ok(outcome @ Outcome::Reply(_)) => break (Some(number), Ok(outcome)),
                    _ if running.is_empty() => if let Some(error) = failure.take() {
                        break (None, Err(error));
                    },
                    _ => {}
                },
                () = &mut timer, if failure.is_none() && stop.is_none() => {
                    stop = plan.stop_reason(&clock.now());
                    match unsent.next().filter(|_| stop.is_none()) {
                        Some(cx) => {
                            let after = plan.delay.saturating_mul(n_hedges + 1);
                            cx.observers.emit(&Event::hedged(cx, after));
                            running.push((n_hedges as usize, Box::pin(self.inner.invoke(cx))));
                            n_hedges += 1;
                            if n_hedges == plan.settings.max {
                                stop = Some("the maximum number of hedges is reached");
                            }
                            timer.as_mut().reset(Timer::now() + plan.delay);
                        }
                        None => stop = stop.or(Some("the maximum number of hedges is reached")),
                    }
                }
            }
        };
        RaceResult {
            result,
            winner,
            n_hedges: n_hedges as usize,
            stop,
        }
    }
}

/// Waits for the first of these futures that ends, and removes it.
async fn first_ready<F: Future>(futures: &mut Vec<(usize, Pin<Box<F>>)>) -> (usize, F::Output) {
    poll_fn(|context| {
        for index in 0..futures.len() {
            let (number, future) = &mut futures[index];
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                let number = *number;
                drop(futures.remove(index));
                return Poll::Ready((number, output));
            }
        }
        Poll::Pending
    })
    .await
}

/// Returns the reason for which a call is not hedged, or `None` if it may be.
fn skip_reason(cx: &CallContext) -> Option<&'static str> {
    if !matches!(cx.target, Target::Tool(_)) {
        return Some("the target is not a tool");
    }
    if !cx.may_run_twice() {
        return Some("the tool is not declared `idempotent` or `read_only`");
    }
    if is_repeated(cx) {
        return Some("this is a repeated attempt");
    }
    if cx.extras.resume.is_some() {
        return Some("the call continues an earlier round");
    }
    if matches!(cx.extras.task, Some(TaskMode::Requested(_))) {
        return Some("the call requests a task");
    }
    None
}

/// Forks the context of a call for a hedge.
fn fork_hedge(cx: &CallContext, number: u32) -> CallContext {
    let mut hedge = cx.fork();
    hedge.is_hedge = true;
    hedge.attempt += number;
    hedge.origin.ask = None;
    hedge.origin.progress = None;
    hedge.extras.task = None;
    // The backend may be a gateway, which should neither retry nor hedge this attempt.
    mark_repeated(&mut hedge, number);
    hedge
}

impl HedgePlan {
    /// Returns the reason for which no further hedge is sent, or `None` if one may be.
    fn stop_reason(&self, now: &Instant) -> Option<&'static str> {
        if self.asker.as_ref().is_some_and(Asker::has_asked) {
            return Some("the caller was asked a question");
        }
        (!self.budget.withdraw(*now, Duration::ZERO)).then_some("the upstream's retry budget is used up")
    }
}

impl RaceResult {
    fn describe(&self, delay: Duration) -> String {
        let delay = format_duration(delay);
        match (self.n_hedges, self.winner, self.stop) {
            (0, _, Some(reason)) => format!("no second attempt after {delay}: {reason}"),
            (0, ..) => format!("ended before {delay}"),
            (_, Some(_), _) => format!("a second attempt after {delay}, which answered first"),
            (_, None, _) => format!("a second attempt after {delay}, which did not answer first"),
        }
    }
}

impl fmt::Debug for HedgeLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HedgeLayer")
            .field("knows_health", &self.health.is_some())
            .finish()
    }
}
