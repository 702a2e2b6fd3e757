use std::{
    any::Any,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tool_core::{
    Alert, AlertKind, AlertPhase, BreakerState, CacheOutcome, CallContext, DegradedStep, ErrorKind, Event,
    Outcome, Scope, SourceChange, SourceState, Target, ToolError, ToolState,
};

use crate::{
    alerts::KINDS,
    conventions,
    histogram::{BYTES, Histogram, SECONDS},
};

/// All that is counted of one tool: a fixed amount, however it is called.
#[derive(Debug, Default)]
pub(crate) struct Series {
    pub(crate) running: AtomicI64,
    pub(crate) calls: Outcomes,
    pub(crate) call_seconds: Histogram,
    pub(crate) attempts: Outcomes,
    pub(crate) attempt_seconds: Histogram,
    pub(crate) retries: AtomicU64,
    pub(crate) hedges: AtomicU64,
    pub(crate) hedges_won: AtomicU64,
    pub(crate) queue_seconds: Histogram,
    pub(crate) queueing: AtomicI64,
    pub(crate) cache: [AtomicU64; CacheOutcome::ALL.len()],
    pub(crate) replays: AtomicU64,
    pub(crate) rate_limited: [AtomicU64; 4],
    pub(crate) shed: [AtomicU64; 4],
    pub(crate) held_back: [AtomicU64; 4],
    pub(crate) breaker: Breaker,
    pub(crate) degraded: [AtomicU64; 3],
    pub(crate) partial: AtomicU64,
    pub(crate) argument_bytes: Histogram,
    pub(crate) result_bytes: Histogram,
}

/// The outcomes that are no kind of error, by the words of [`conventions::outcome`].
const OTHERS: [&str; 6] = [
    "ok",
    conventions::TOOL_ERROR,
    conventions::CANCELLED,
    "needs_input",
    "task",
    "pending",
];
/// How many outcomes there are.
const N_OUTCOMES: usize = OTHERS.len() + ErrorKind::ALL.len();

/// How often something ended in which way.
#[derive(Debug, Default)]
pub(crate) struct Outcomes([AtomicU64; N_OUTCOMES]);

/// What is known of a circuit breaker.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    changes: [AtomicU64; 3],
    /// One more than the place of the state in [`BREAKER_STATES`]; 0 if it never was in another than the first.
    state: AtomicU64,
    /// Whose state that is: one that a reload has put in the place of another begins closed, and that of a tool or server
    /// which a reload removed is gone.
    owner: Mutex<Option<Owner>>,
}

/// Where a breaker is kept: the state of a tool or of an upstream.
pub(crate) type Owner = Weak<dyn Any + Send + Sync>;

/// What is counted of a source of tools.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    changes: [AtomicU64; SourceState::WORDS.len()],
    /// How long starts took, those that failed included.
    pub(crate) seconds: Histogram,
}

/// Which alerts fire of one subject: those that end, which a tool that is switched off and failures of single calls have
/// elsewhere or not at all.
#[derive(Debug, Default)]
pub(crate) struct Firing {
    /// One, or more where several subjects are counted together.
    now: [AtomicU64; KINDS.len()],
    has_fired: [AtomicBool; KINDS.len()],
}

/// The states of a breaker, in the order of the number that stands for each.
pub(crate) const BREAKER_STATES: [BreakerState; 3] =
    [BreakerState::Closed, BreakerState::HalfOpen, BreakerState::Open];

impl Outcomes {
    fn add(&self, result: Option<&Result<Outcome, ToolError>>) {
        let place = match result {
            Some(Err(error)) => OTHERS.len() + error.kind() as usize,
            other => {
                let word = conventions::outcome(other);
                OTHERS.iter().position(|known| *known == word).unwrap_or_default()
            }
        };
        self.0[place].fetch_add(1, Ordering::Relaxed);
    }

    /// Each outcome that there was, and how often.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let kinds = ErrorKind::ALL.iter().map(|kind| kind.as_str());
        let words = OTHERS.into_iter().chain(kinds);
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        words.zip(counts).filter(|(_, count)| *count > 0)
    }
}

impl Breaker {
    pub(crate) fn enter(&self, state: BreakerState, owner: Owner) {
        if let Some(place) = BREAKER_STATES.iter().position(|known| *known == state) {
            self.changes[place].fetch_add(1, Ordering::Relaxed);
            self.state.store(place as u64 + 1, Ordering::Relaxed);
            *self.owner() = Some(owner);
        }
    }

    /// Takes note of whose breaker calls go through now.
    pub(crate) fn belongs_to(&self, owner: impl FnOnce() -> Owner) {
        const CLOSED: u64 = 1;
        if self.state.load(Ordering::Relaxed) <= CLOSED {
            return;
        }
        let (mut known, owner) = (self.owner(), owner());
        if !known.as_ref().is_some_and(|known| known.ptr_eq(&owner)) {
            self.state.store(CLOSED, Ordering::Relaxed);
            *known = Some(owner);
        }
    }

    /// The number of its state; nothing for one that never moved, or whose tool or server is gone.
    pub(crate) fn state(&self) -> Option<u64> {
        let is_there = self
            .owner()
            .as_ref()
            .is_some_and(|owner| owner.strong_count() > 0);
        self.state
            .load(Ordering::Relaxed)
            .checked_sub(1)
            .filter(|_| is_there)
    }

    /// Whether it ever moved.
    pub(crate) fn has_moved(&self) -> bool {
        self.state.load(Ordering::Relaxed) > 0
    }

    fn owner(&self) -> MutexGuard<'_, Option<Owner>> {
        self.owner.lock()
    }

    pub(crate) fn changes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let words = BREAKER_STATES.iter().map(|state| state.as_str());
        words.zip(self.changes.iter().map(|count| count.load(Ordering::Relaxed)))
    }
}

impl Firing {
    /// Whether alerts of this kind are kept here.
    pub(crate) fn is_of(kind: AlertKind) -> bool {
        KINDS.contains(&kind)
    }

    pub(crate) fn count(&self, alert: &Alert) {
        let Some(place) = KINDS.iter().position(|kind| *kind == alert.kind) else {
            return;
        };
        let now = &self.now[place];
        match alert.phase {
            AlertPhase::Firing => {
                now.fetch_add(1, Ordering::Relaxed);
                self.has_fired[place].store(true, Ordering::Relaxed);
            }
            // Not below none, whatever began before anybody counted.
            AlertPhase::Resolved => {
                let less = |count: u64| count.checked_sub(1);
                let _ = now.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            }
        }
    }

    /// Each kind that has fired, and how often it does now.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let kinds = KINDS.iter().zip(&self.now).zip(&self.has_fired);
        kinds
            .filter(|(_, has_fired)| has_fired.load(Ordering::Relaxed))
            .map(|((kind, now), _)| (kind.as_str(), now.load(Ordering::Relaxed)))
    }
}

impl Starts {
    pub(crate) fn count(&self, change: &SourceChange) {
        self.changes[change.to.place()].fetch_add(1, Ordering::Relaxed);
        if change.from == SourceState::Starting {
            self.seconds.add(&SECONDS, microseconds(change.after));
        }
    }

    /// Each state that the source came into, and how often.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.changes.iter().map(|count| count.load(Ordering::Relaxed));
        let all = SourceState::WORDS.into_iter().zip(counts);
        all.filter(|(_, count)| *count > 0)
    }
}

impl Series {
    /// Counts what happened to a call of this tool.
    pub(crate) fn count(&self, event: &Event<'_>) {
        let by_scope = |counts: &[AtomicU64; 4], scope: Scope| {
            counts[scope as usize].fetch_add(1, Ordering::Relaxed);
        };
        match event {
            Event::CallStarted { cx } => {
                self.running.fetch_add(1, Ordering::Relaxed);
                let n_bytes = cx.arguments.raw().len() as u64;
                self.argument_bytes.add(&BYTES, n_bytes);
                // What is no tool is counted together with others of its kind.
                if matches!(cx.target, Target::Tool(_)) {
                    self.breaker.belongs_to(|| owner(cx));
                }
            }
            Event::CallFinished { result, elapsed, .. } => {
                self.running.fetch_sub(1, Ordering::Relaxed);
                self.calls.add(*result);
                self.call_seconds.add(&SECONDS, microseconds(*elapsed));
                if let Some(Ok(Outcome::Reply(reply))) = result {
                    self.result_bytes.add(&BYTES, reply.raw().len() as u64);
                    if reply.is_partial() {
                        self.partial.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            Event::AttemptFinished { result, elapsed, .. } => {
                self.attempts.add(*result);
                self.attempt_seconds.add(&SECONDS, microseconds(*elapsed));
            }
            Event::Retried { .. } => {
                self.retries.fetch_add(1, Ordering::Relaxed);
            }
            Event::Hedged { .. } => {
                self.hedges.fetch_add(1, Ordering::Relaxed);
            }
            Event::HedgeWon { .. } => {
                self.hedges_won.fetch_add(1, Ordering::Relaxed);
            }
            Event::Queueing { .. } => {
                self.queueing.fetch_add(1, Ordering::Relaxed);
            }
            Event::Queued { waited, .. } => {
                self.queueing.fetch_sub(1, Ordering::Relaxed);
                self.queue_seconds.add(&SECONDS, microseconds(*waited));
            }
            Event::CacheUsed { outcome, .. } => {
                if let Some(place) = CacheOutcome::ALL.iter().position(|known| known == outcome) {
                    self.cache[place].fetch_add(1, Ordering::Relaxed);
                }
            }
            Event::Replayed { .. } => {
                self.replays.fetch_add(1, Ordering::Relaxed);
            }
            Event::RateLimited { scope, .. } => by_scope(&self.rate_limited, *scope),
            Event::Shed { scope, .. } => by_scope(&self.shed, *scope),
            Event::BreakerRejected { scope, .. } => by_scope(&self.held_back, *scope),
            Event::Degraded { degraded, .. } => {
                self.degraded[degraded.step as usize].fetch_add(1, Ordering::Relaxed);
            }
            Event::BreakerChanged {
                cx,
                scope: Scope::Tool,
                change,
            } => self.breaker.enter(change.to, owner(cx)),
            _ => {}
        }
    }
}

/// What stands for the state of the tool that is called.
fn owner(cx: &CallContext) -> Owner {
    let state: Weak<ToolState> = Arc::downgrade(cx.tool().state());
    state
}

/// Each scope for which something was counted, and how often.
pub(crate) fn scopes(counts: &[AtomicU64; 4]) -> impl Iterator<Item = (&'static str, u64)> {
    let words = Scope::ALL.iter().map(|scope| scope.as_str());
    let counts = counts.iter().map(|count| count.load(Ordering::Relaxed));
    words.zip(counts).filter(|(_, count)| *count > 0)
}

/// Each step that was taken, and how often.
pub(crate) fn steps(counts: &[AtomicU64; 3]) -> impl Iterator<Item = (&'static str, u64)> {
    let words = DegradedStep::ALL.iter().map(|step| step.as_str());
    let counts = counts.iter().map(|count| count.load(Ordering::Relaxed));
    words.zip(counts).filter(|(_, count)| *count > 0)
}

/// Each place of answers from which one came, and how often.
pub(crate) fn cache(
    counts: &[AtomicU64; CacheOutcome::ALL.len()],
) -> impl Iterator<Item = (&'static str, u64)> {
    let words = CacheOutcome::ALL.iter().map(|outcome| outcome.as_str());
    let counts = counts.iter().map(|count| count.load(Ordering::Relaxed));
    words.zip(counts).filter(|(_, count)| *count > 0)
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
