use crate::ConcurrencyLimits;
use std::{collections::HashMap, fmt, pin::pin, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;
use tool_core::{
    CallContext, Caller, ConcurrencySettings, ErrorKind, Event, Invoke, Layer, Outcome, Scope, ToolError,
    format_duration,
};

use super::fair_semaphore::{Entry, Gate, Place};
use crate::within::within;

/// Bounds how many attempts run at once, by the tool's [`ConcurrencyLimits`]. More wait for their turn in bounded
/// queues, first come first served, and what finds a queue full is refused at once as
/// [`Overloaded`](ErrorKind::Overloaded) with a hint when to come again.
///
/// An attempt takes up to four places: its principal's, the tool's, that of the tool's upstream and that of all tools, in
/// this order, the narrowest first. What waits for a tool that hangs holds no place that other tools need, and a
/// principal that waits for its own places holds none of a tool.
///
/// # How long an attempt waits
/// As long as the limit says, or else a quarter of the time that the call has left: one that gets its turn still has
/// the time to run. Then it is refused as overloaded; if its deadline comes first, as timed out. Nothing was sent then.
///
/// One that would wait in vain is refused at once: if those before it will take longer than that, by how long attempts took
/// lately. Under a load that lasts, calls are thus answered or refused, and do not pass their time in a queue.
///
/// An attempt beside another one ([`CallContext::is_hedge`]) does not wait at all.
///
/// # Cancellation
/// An attempt that is dropped while it waits leaves the queue, and one that is dropped while it runs gives its places
/// to the next.
#[derive(Clone, Default)]
pub struct ConcurrencyLimitLayer {
    shared: Arc<Shared>,
}

/// The layer of [`ConcurrencyLimitLayer`].
#[derive(Debug, Clone)]
pub struct ConcurrencyLimit<S> {
    settings: ConcurrencyLimitLayer,
    inner: S,
}

/// What belongs to no tool.
#[derive(Default)]
struct Shared {
    total: Arc<Gate>,
    principals: Mutex<Principals>,
}

/// A gate for each principal that has calls.
#[derive(Default)]
struct Principals {
    gates: HashMap<(Arc<str>, Arc<str>), Arc<Gate>>,
    sweep_at: usize,
}

/// The places that an attempt holds.
#[derive(Default)]
struct Places {
    held: [Option<Place>; 4],
    waited: Duration,
}

/// The turn that an attempt waits for. Observers are told when it begins to, and when it no longer does: also if its
/// future is dropped.
struct Turn<'a> {
    cx: &'a CallContext,
    start: Instant,
}

impl<'a> Turn<'a> {
    fn await_from_now(cx: &'a CallContext) -> Self {
        cx.observers.tell(&Event::Queueing { cx });
        let start = Instant::now();
        Self { cx, start }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let (cx, waited) = (self.cx, self.start.elapsed());
        cx.observers.tell(&Event::Queued { cx, waited });
    }
}

impl ConcurrencyLimitLayer {
    /// A layer in which nothing runs yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes all places that an attempt needs.
    async fn enter(&self, cx: &CallContext) -> Result<Places, ToolError> {
        let limits = cx.tool().settings().get::<ConcurrencyLimits>();
        let ConcurrencyLimits(limits) = limits.copied().unwrap_or_default();
        let wanted = [
            (Scope::Principal, limits.principal),
            (Scope::Tool, limits.tool),
            (Scope::Upstream, limits.upstream),
            (Scope::Total, limits.total),
        ];
        let mut places = Places::default();
        for (slot, (scope, limit)) in wanted.into_iter().enumerate() {
            if let Some(limit) = limit
                && let Some(gate) = self.gate(scope, cx)
            {
                let place = match gate.enter(&limit) {
                    Entry::Place(place) => place,
                    Entry::Full(hint) => {
                        cx.observers.tell(&Event::Shed { cx, scope });
                        return Err(full(scope, cx, &limit, hint));
                    }
                    Entry::Queue(_) if cx.is_hedge => {
                        let message = format!("no place is free for a hedge of {}", whose(scope, cx));
                        return Err(ToolError::new(ErrorKind::Overloaded, message));
                    }
                    Entry::Queue(mut waiting) => {
                        let patience = Patience::of(cx, &limit, places.waited);
                        if let Some(expected) = waiting.expected()
                            && patience.limit.is_some_and(|limit| expected > limit)
                        {
                            drop(waiting);
                            cx.observers.tell(&Event::Shed { cx, scope });
                            let error = patience.in_vain(scope, cx, expected);
                            return Err(error.with_retry_after(gate.hint()));
                        }
                        let turn = Turn::await_from_now(cx);
                        // Out of the way of the calls that need not wait.
                        let place = Box::pin(patience.wait(waiting.place())).await;
                        places.waited += turn.start.elapsed();
                        drop(turn);
                        place.ok_or_else(|| patience.over(scope, cx, &gate))?
                    }
                };
                places.held[slot] = Some(place);
            }
        }
        Ok(places)
    }

    fn gate(&self, scope: Scope, cx: &CallContext) -> Option<Arc<Gate>> {
        let tool = cx.tool();
        match scope {
            Scope::Principal => Some(self.shared.gate_of(&cx.origin.caller)),
            Scope::Tool => Some(tool.state().get_or_init(Gate::default)),
            Scope::Upstream => tool
                .state()
                .upstream()
                .map(|upstream| upstream.get_or_init(Gate::default)),
            Scope::Total => Some(self.shared.total.clone()),
        }
    }
}

/// How many principals are kept at least before those without calls are forgotten.
const MIN_SWEEP: usize = 1024;

impl Shared {
    fn gate_of(&self, caller: &Caller) -> Arc<Gate> {
        let mut principals = self.principals.lock();
        if principals.gates.len() >= principals.sweep_at.max(MIN_SWEEP) {
            // A call holds its gate: a gate that nobody else holds has none.
            principals.gates.retain(|_, gate| Arc::strong_count(gate) > 1);
            principals.sweep_at = principals.gates.len() * 2;
        }
        let key = (caller.tenant.clone(), caller.principal.clone());
        principals.gates.entry(key).or_default().clone()
    }
}

/// How long an attempt waits for a place.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// Nothing if it may wait for ever.
    limit: Option<Duration>,
    /// Whether it is the call's deadline that ends it.
    is_deadline: bool,
}

impl Patience {
    fn of(cx: &CallContext, limit: &ConcurrencySettings, waited: Duration) -> Self {
        let left = cx.remaining();
        let quarter = left.map(|left| ((left + waited) / 4).saturating_sub(waited));
        match (limit.wait.or(quarter), left) {
            (Some(wait), Some(left)) => Self {
                limit: Some(wait.min(left)),
                is_deadline: left <= wait,
            },
            (wait, _) => Self {
                limit: wait,
                is_deadline: false,
            },
        }
    }

    async fn wait(self, place: impl Future<Output = Place>) -> Option<Place> {
        match self.limit {
            Some(limit) => within(limit, None, pin!(place)).await,
            None => Some(place.await),
        }
    }

    /// What is said where it would not do.
    fn in_vain(self, scope: Scope, cx: &CallContext, expected: Duration) -> ToolError {
        let message = format!(
            "too many calls of {} at once: the turn of another would come in about {}, and it may wait for {}",
            whose(scope, cx),
            format_duration(expected),
            format_duration(self.limit.unwrap_or_default())
        );
        ToolError::new(ErrorKind::Overloaded, message)
    }

    /// What is said when it is over.
    fn over(self, scope: Scope, cx: &CallContext, gate: &Gate) -> ToolError {
        let waited = format_duration(self.limit.unwrap_or_default());
        let message = format!("no place for another call of {} in {waited}", whose(scope, cx));
        if self.is_deadline {
            return ToolError::new(ErrorKind::Timeout, message);
        }
        cx.observers.tell(&Event::Shed { cx, scope });
        ToolError::new(ErrorKind::Overloaded, message).with_retry_after(gate.hint())
    }
}

fn full(scope: Scope, cx: &CallContext, limit: &ConcurrencySettings, hint: Duration) -> ToolError {
    let message = format!(
        "too many calls of {} at once: {} are running and {} are waiting",
        whose(scope, cx),
        limit.max,
        limit.queue
    );
    ToolError::new(ErrorKind::Overloaded, message).with_retry_after(hint)
}

fn whose(scope: Scope, cx: &CallContext) -> String {
    match scope {
        Scope::Principal => "this caller".to_owned(),
        Scope::Tool => format!("`{}`", cx.tool().name()),
        // Not by its name, which may be an internal address.
        Scope::Upstream => format!("what runs `{}`", cx.tool().name()),
        Scope::Total => "all tools".to_owned(),
    }
}

impl<S> Layer<S> for ConcurrencyLimitLayer {
    type Invoke = ConcurrencyLimit<S>;

    fn layer(self, inner: S) -> ConcurrencyLimit<S> {
        ConcurrencyLimit {
            settings: self,
            inner,
        }
    }
}

impl<S: Invoke> Invoke for ConcurrencyLimit<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        if cx.tool().settings().get::<ConcurrencyLimits>().is_none() {
            return self.inner.invoke(cx).await;
        }
        if cx.is_dry_run() {
            cx.explain("concurrency", || "no place is taken in a dry run".to_owned());
            return self.inner.invoke(cx).await;
        }
        let places = match self.settings.enter(cx).await {
            Ok(places) => places,
            Err(error) => {
                cx.explain("concurrency", || format!("refused: {error}"));
                return Err(error);
            }
        };
        cx.explain("concurrency", || match places.waited {
            Duration::ZERO => "a place at once".to_owned(),
            waited => format!("a place after {}", format_duration(waited)),
        });
        let result = self.inner.invoke(cx).await;
        drop(places);
        result
    }
}

impl fmt::Debug for ConcurrencyLimitLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Concurrency").finish_non_exhaustive()
    }
}
