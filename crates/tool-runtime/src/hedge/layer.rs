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
    Asker, CallContext, Event, Health, Instant, Invoke, Layer, Outcome, Target, TaskMode, ToolError,
    format_duration,
};

use crate::{
    HedgeAfter, HedgePercent, HedgeSettings, RetryBudget, RetrySettings,
    retry::{budget, is_repeated, mark},
};

/// Gives an attempt that is slow company, where the tool's [`HedgeSettings`] say so: a second attempt at the same call. The
/// first answer counts, and the others are cancelled. Few slow attempts then make few slow calls, for a little more load
/// (Dean and Barroso, "The Tail at Scale", 2013).
///
/// # Which calls
/// Those of tools that may run twice by their operator's word ([`CallContext::may_run_twice`]), whatever the settings say.
/// An attempt that is itself a repeated one gets no company, nor another round of a call, a call that is to be a task, or
/// one in which the caller was asked for something.
///
/// # What it may cost
/// A hedge is spent from the upstream's [`RetryBudget`], as a retry is: both together are a tenth of its calls, or one a
/// second. It waits for nothing that is scarce: where there is no place for it at once, it is not sent. So an upstream that
/// is slow because it has too much to do is not given more.
///
/// # What ends a call
/// An answer, whoever has it, also one in which the tool reports a failure. A failed hedge is forgotten. When the first
/// attempt fails, those beside it have their time if the failure may pass; when all have failed, the first one's failure
/// counts. A hedge can ask the caller nothing and shows no progress.
///
/// # Cancellation
/// Dropping the call drops all of its attempts.
///
/// # Order
/// Inside retries, so that a hedged attempt is tried again as one; outside all that guards a single attempt, since a hedge is
/// an attempt with a place, a breaker and a time limit of its own.
#[derive(Clone, Default)]
pub struct HedgeLayer {
    health: Option<Arc<dyn Health>>,
}

/// The layer of [`HedgeLayer`].
#[derive(Debug, Clone)]
pub struct Hedge<S> {
    settings: HedgeLayer,
    inner: S,
}

/// How long attempts of a tool usually take, as it was read a moment ago.
#[derive(Default)]
struct Usual(Mutex<Option<(Instant, Option<Duration>)>>);

/// How a hedged attempt is made.
struct Plan {
    settings: HedgeSettings,
    after: Duration,
    budget: Arc<RetryBudget>,
    asker: Option<Asker>,
}

/// What became of a hedged attempt.
struct Ended {
    result: Result<Outcome, ToolError>,
    /// Which of those beside the first has answered.
    winner: Option<usize>,
    n_hedges: usize,
    /// Why there were no more.
    stop: Option<&'static str>,
}

/// For how long a percentile is taken to be what it was.
const READ_EVERY: Duration = Duration::from_secs(1);
/// How many attempts must be known for a percentile to mean something.
const MIN_CALLS: u64 = 20;
/// Earlier than this there is no hedge, whatever the percentile: it would come with the answer.
const MIN_AFTER: Duration = Duration::from_millis(1);

impl HedgeLayer {
    /// A layer that asks this how long tools usually take. Without it, percentiles are taken to be unknown.
    #[must_use]
    pub fn new(health: Arc<dyn Health>) -> Self {
        Self { health: Some(health) }
    }

    /// How long the first attempt is alone.
    fn after(&self, cx: &CallContext, settings: HedgeSettings) -> Duration {
        match settings.after {
            HedgeAfter::Time(after) => after,
            HedgeAfter::Percentile { percent, at_first } => self.usual(cx, percent).unwrap_or(at_first),
        }
    }

    /// How long so many of the tool's attempts took lately; nothing while too few are known.
    fn usual(&self, cx: &CallContext, percent: HedgePercent) -> Option<Duration> {
        let health = self.health.as_ref()?;
        let usual = cx.tool().state().get_or_init(Usual::default);
        let now = cx.clock.now();
        let mut known = usual.0.lock();
        if let Some((at, usual)) = *known
            && now.since(at) < READ_EVERY
        {
            return usual;
        }
        let report = health.tool(cx.tool().name());
        let took = match percent {
            HedgePercent::P95 => report.p95,
            HedgePercent::P99 => report.p99,
        };
        // An estimate, and where all attempts take the same time it must not be below that.
        let after = (took + took / 10).max(MIN_AFTER);
        let usual = (report.n_calls >= MIN_CALLS).then_some(after);
        *known = Some((now, usual));
        usual
    }
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
        if let Some(why) = alone(cx) {
            cx.explain("hedge", || format!("not hedged: {why}"));
            return self.inner.invoke(cx).await;
        }
        // Boxed, so that the calls of other tools do not carry the room for this.
        Box::pin(self.hedged(cx, settings)).await
    }
}

impl<S: Invoke> Hedge<S> {
    async fn hedged(&self, cx: &mut CallContext, settings: HedgeSettings) -> Result<Outcome, ToolError> {
        if cx.attempt == 0 {
            cx.next_attempt();
        }
        let plan = Plan {
            after: self.settings.after(cx, settings),
            settings,
            budget: budget(cx),
            asker: cx.origin.ask.clone(),
        };
        if cx.tool().settings().get::<RetrySettings>().is_none() {
            // Otherwise retries have taken note of it.
            plan.budget.deposit(cx.clock.now());
        }
        // Made before the first attempt has the context to itself.
        let mut beside: Vec<_> = (1..=settings.max).map(|number| copy(cx, number)).collect();
        let ended = self.race(cx, &mut beside, &plan).await;
        beside.truncate(ended.n_hedges);
        let winner = ended.winner.map(|winner| beside.swap_remove(winner));
        for loser in beside {
            cx.merge_hedge(loser);
        }
        if let Some(winner) = winner {
            cx.merge_fork(winner);
            cx.observers.tell(&Event::HedgeWon { cx });
        }
        cx.explain("hedge", || ended.text(plan.after));
        ended.result
    }

    /// The first attempt, and after a while others beside it, until there is an answer or all have failed.
    async fn race(&self, cx: &mut CallContext, beside: &mut [CallContext], plan: &Plan) -> Ended {
        let clock = cx.clock.clone();
        let mut first = pin!(self.inner.invoke(cx));
        let mut failure = None;
        let mut spare = beside.iter_mut();
        let mut others = Vec::new();
        let (mut n_hedges, mut stop) = (0, None);
        let mut timer = pin!(sleep(plan.after));
        let (winner, result) = loop {
            let is_first_alone = others.is_empty();
            tokio::select! {
                biased;
                result = &mut first, if failure.is_none() => match result {
                    Err(error) if error.kind().is_retryable() && !is_first_alone => failure = Some(error),
                    result => break (None, result),
                },
                (number, result) = any(&mut others), if !is_first_alone => match result {
                    Ok(outcome @ Outcome::Reply(_)) => break (Some(number), Ok(outcome)),
                    _ if others.is_empty() => if let Some(error) = failure.take() {
                        break (None, Err(error));
                    },
                    _ => {}
                },
                () = &mut timer, if failure.is_none() && stop.is_none() => {
                    stop = plan.stop(&clock.now());
                    match spare.next().filter(|_| stop.is_none()) {
                        Some(cx) => {
                            let after = plan.after.saturating_mul(n_hedges + 1);
                            cx.observers.tell(&Event::Hedged { cx, after });
                            others.push((n_hedges as usize, Box::pin(self.inner.invoke(cx))));
                            n_hedges += 1;
                            if n_hedges == plan.settings.max {
                                stop = Some("there are as many as there may be");
                            }
                            timer.as_mut().reset(Timer::now() + plan.after);
                        }
                        None => stop = stop.or(Some("there are as many as there may be")),
                    }
                }
            }
        };
        Ended {
            result,
            winner,
            n_hedges: n_hedges as usize,
            stop,
        }
    }
}

/// The end of any of these, which is taken from among them.
async fn any<F: Future>(futures: &mut Vec<(usize, Pin<Box<F>>)>) -> (usize, F::Output) {
    poll_fn(|context| {
        for place in 0..futures.len() {
            let (number, future) = &mut futures[place];
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                let number = *number;
                drop(futures.remove(place));
                return Poll::Ready((number, output));
            }
        }
        Poll::Pending
    })
    .await
}

/// Why a call is not hedged, if it is not.
fn alone(cx: &CallContext) -> Option<&'static str> {
    if !matches!(cx.target, Target::Tool(_)) {
        return Some("it is no call of a tool");
    }
    if !cx.may_run_twice() {
        return Some("the tool is not declared `idempotent` or `read_only`");
    }
    if is_repeated(cx) {
        return Some("this is a repeated attempt");
    }
    if cx.extras.resume.is_some() {
        return Some("this is another round of a call");
    }
    if matches!(cx.extras.task, Some(TaskMode::Requested(_))) {
        return Some("the call is to be a task");
    }
    None
}

/// The same call, for an attempt beside the first.
fn copy(cx: &CallContext, number: u32) -> CallContext {
    let mut copy = cx.fork();
    copy.is_hedge = true;
    copy.attempt += number;
    copy.origin.ask = None;
    copy.origin.progress = None;
    copy.extras.task = None;
    // What runs the tool may be a gateway, which should neither try this again nor hedge it.
    mark(&mut copy, number);
    copy
}

impl Plan {
    /// Why there is no other attempt now, if there is none.
    fn stop(&self, now: &Instant) -> Option<&'static str> {
        if self.asker.as_ref().is_some_and(Asker::has_asked) {
            return Some("the caller was asked for something");
        }
        (!self.budget.withdraw(*now, Duration::ZERO)).then_some("the upstream's share of retries is used up")
    }
}

impl Ended {
    fn text(&self, after: Duration) -> String {
        let after = format_duration(after);
        match (self.n_hedges, self.winner, self.stop) {
            (0, _, Some(why)) => format!("no second attempt after {after}: {why}"),
            (0, ..) => format!("ended before {after}"),
            (_, Some(_), _) => format!("a second attempt after {after}, which answered first"),
            (_, None, _) => format!("a second attempt after {after}, which did not answer first"),
        }
    }
}

impl fmt::Debug for HedgeLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hedge")
            .field("knows_health", &self.health.is_some())
            .finish()
    }
}
