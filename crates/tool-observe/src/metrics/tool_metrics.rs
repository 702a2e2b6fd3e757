use std::sync::{
    Arc, Weak,
    atomic::{AtomicI64, AtomicU64, Ordering},
};

use tool_core::{
    CacheOutcome, CallContext, DegradedStep, ErrorKind, Event, Outcome, Scope, Target, ToolError, ToolState,
};

use super::{
    breaker_metrics::{BreakerMetrics, BreakerOwner},
    histogram::{BYTES, Histogram, SECONDS, microseconds},
};
use crate::conventions;

/// Metrics of one tool. They take a fixed amount of memory, whatever callers send.
#[derive(Debug, Default)]
pub(super) struct ToolMetrics {
    pub(super) running: AtomicI64,
    pub(super) calls: OutcomeCounts,
    pub(super) call_seconds: Histogram,
    pub(super) attempts: OutcomeCounts,
    pub(super) attempt_seconds: Histogram,
    pub(super) retries: AtomicU64,
    pub(super) hedges: AtomicU64,
    pub(super) hedges_won: AtomicU64,
    pub(super) queue_seconds: Histogram,
    pub(super) queueing: AtomicI64,
    pub(super) cache: [AtomicU64; CacheOutcome::ALL.len()],
    pub(super) replays: AtomicU64,
    pub(super) rate_limited: [AtomicU64; 4],
    pub(super) shed: [AtomicU64; 4],
    pub(super) held_back: [AtomicU64; 4],
    pub(super) breaker: BreakerMetrics,
    pub(super) degraded: [AtomicU64; 3],
    pub(super) partial: AtomicU64,
    pub(super) argument_bytes: Histogram,
    pub(super) result_bytes: Histogram,
}

/// Outcomes that are not error kinds, in the words of [`conventions::outcome`].
const OTHER_OUTCOMES: [&str; 6] = [
    "ok",
    conventions::TOOL_ERROR,
    conventions::CANCELLED,
    "needs_input",
    "task",
    "pending",
];
/// Number of outcomes.
const N_OUTCOMES: usize = OTHER_OUTCOMES.len() + ErrorKind::ALL.len();

/// Number of calls or attempts for each outcome.
#[derive(Debug, Default)]
pub(super) struct OutcomeCounts([AtomicU64; N_OUTCOMES]);

impl OutcomeCounts {
    fn add(&self, result: Option<&Result<Outcome, ToolError>>) {
        let index = match result {
            Some(Err(error)) => OTHER_OUTCOMES.len() + error.kind() as usize,
            other => {
                let word = conventions::outcome(other);
                OTHER_OUTCOMES
                    .iter()
                    .position(|known| *known == word)
                    .unwrap_or_default()
            }
        };
        self.0[index].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns each outcome that occurred, with its count.
    pub(super) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let kinds = ErrorKind::ALL.iter().map(|kind| kind.as_str());
        let words = OTHER_OUTCOMES.into_iter().chain(kinds);
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        words.zip(counts).filter(|(_, count)| *count > 0)
    }
}

impl ToolMetrics {
    /// Counts what happened to a call of this tool.
    pub(super) fn count(&self, event: &Event<'_>) {
        let count_scope = |counts: &[AtomicU64; 4], scope: Scope| {
            counts[scope as usize].fetch_add(1, Ordering::Relaxed);
        };
        match event {
            Event::CallStarted { cx, .. } => {
                self.running.fetch_add(1, Ordering::Relaxed);
                let n_bytes = cx.arguments.raw().len() as u64;
                self.argument_bytes.record(&BYTES, n_bytes);
                // Targets other than tools are counted together by method, so their metrics have no single owner.
                if matches!(cx.target, Target::Tool(_)) {
                    self.breaker.set_owner(|| owner(cx));
                }
            }
            Event::CallFinished { result, elapsed, .. } => {
                self.running.fetch_sub(1, Ordering::Relaxed);
                self.calls.add(*result);
                self.call_seconds.record(&SECONDS, microseconds(*elapsed));
                if let Some(Ok(Outcome::Reply(reply))) = result {
                    self.result_bytes.record(&BYTES, reply.raw().len() as u64);
                    if reply.is_partial() {
                        self.partial.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            Event::AttemptFinished { result, elapsed, .. } => {
                self.attempts.add(*result);
                self.attempt_seconds.record(&SECONDS, microseconds(*elapsed));
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
                self.queue_seconds.record(&SECONDS, microseconds(*waited));
            }
            Event::CacheUsed { outcome, .. } => {
                if let Some(index) = CacheOutcome::ALL.iter().position(|known| known == outcome) {
                    self.cache[index].fetch_add(1, Ordering::Relaxed);
                }
            }
            Event::Replayed { .. } => {
                self.replays.fetch_add(1, Ordering::Relaxed);
            }
            Event::RateLimited { scope, .. } => count_scope(&self.rate_limited, *scope),
            Event::Shed { scope, .. } => count_scope(&self.shed, *scope),
            Event::BreakerRejected { scope, .. } => count_scope(&self.held_back, *scope),
            Event::Degraded { degraded, .. } => {
                self.degraded[degraded.step as usize].fetch_add(1, Ordering::Relaxed);
            }
            Event::BreakerChanged {
                cx,
                scope: Scope::Tool,
                change,
                ..
            } => self.breaker.enter(change.to, owner(cx)),
            _ => {}
        }
    }
}

/// Returns the state of the tool that is called, as the owner of its breaker.
fn owner(cx: &CallContext) -> BreakerOwner {
    let state: Weak<ToolState> = Arc::downgrade(cx.tool().state());
    state
}

/// Returns each scope with a count above zero.
pub(super) fn by_scope(counts: &[AtomicU64; 4]) -> impl Iterator<Item = (&'static str, u64)> {
    let words = Scope::ALL.iter().map(|scope| scope.as_str());
    let counts = counts.iter().map(|count| count.load(Ordering::Relaxed));
    words.zip(counts).filter(|(_, count)| *count > 0)
}

/// Returns each fallback step with a count above zero.
pub(super) fn by_step(counts: &[AtomicU64; 3]) -> impl Iterator<Item = (&'static str, u64)> {
    let words = DegradedStep::ALL.iter().map(|step| step.as_str());
    let counts = counts.iter().map(|count| count.load(Ordering::Relaxed));
    words.zip(counts).filter(|(_, count)| *count > 0)
}

/// Returns each cache outcome with a count above zero.
pub(super) fn by_cache_outcome(
    counts: &[AtomicU64; CacheOutcome::ALL.len()],
) -> impl Iterator<Item = (&'static str, u64)> {
    let words = CacheOutcome::ALL.iter().map(|outcome| outcome.as_str());
    let counts = counts.iter().map(|count| count.load(Ordering::Relaxed));
    words.zip(counts).filter(|(_, count)| *count > 0)
}
