use std::time::Duration;

use super::BreakerSettings;
use tool_core::{BreakerChange, BreakerState, Instant, Jitter};

use crate::sync::Mutex;

/// State machine of one circuit breaker (Nygard, "Release It!"). It counts outcomes and decides which calls may pass; its users
/// decide what is a failure.
///
/// # States
/// *Closed*: calls pass. The circuit opens after a number of failures in a row, or if the share of failures among the calls of a
/// sliding window is too large. *Open*: no call passes until the pause is over. *Half-open*: exactly one call passes, the
/// probe. If the probe succeeds, the circuit closes and its counters are reset. If it fails, the circuit opens for twice as
/// long. If its outcome is unknown, the next call is the probe.
///
/// Outcomes of calls that began in an earlier state are not counted.
///
/// # Examples
/// ```
/// use tool_core::Instant;
/// use tool_policy::Circuit;
///
/// let circuit = Circuit::default();
/// assert!(circuit.peek(Instant::default()).is_ok());
/// ```
#[derive(Debug, Default)]
pub struct Circuit(Mutex<Machine>);

/// Permit for one call. Return it with [`Circuit::report`], whatever the outcome of the call.
#[derive(Debug)]
#[must_use = "a probe that is not reported blocks all other calls"]
pub struct CircuitPermit {
    generation: u64,
    is_probe: bool,
    changed: Option<BreakerChange>,
}

/// Outcome of a call, as a circuit counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CircuitOutcome {
    /// The call succeeded.
    Success,
    /// The call failed.
    Failure,
    /// The call was answered with a refusal, which its own content caused. It counts neither way, but it is enough for a probe.
    Reachable,
    /// The call ended without an outcome.
    Unknown,
}

/// Error of a circuit that lets no call pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CircuitOpen {
    /// Time until a call may pass. `None` while a probe runs.
    pub retry_after: Option<Duration>,
}

#[derive(Debug, Default)]
struct Machine {
    phase: Phase,
    /// Grows with every change of the phase, except for a probe without an outcome.
    generation: u64,
    /// Number of openings since the circuit was last closed.
    n_openings: u32,
}

#[derive(Debug)]
enum Phase {
    Closed(Counts),
    Open { until: Instant },
    HalfOpen { is_probing: bool },
}

impl Default for Phase {
    fn default() -> Self {
        Self::Closed(Counts::default())
    }
}

impl Circuit {
    /// Checks that a call could pass now, without taking a permit.
    ///
    /// # Errors
    /// [`CircuitOpen`] if none could.
    pub fn peek(&self, now: Instant) -> Result<(), CircuitOpen> {
        self.lock(|machine| machine.check(now))
    }

    /// Takes a permit for a call.
    ///
    /// # Errors
    /// [`CircuitOpen`] if no call may pass now.
    pub fn acquire(&self, now: Instant) -> Result<CircuitPermit, CircuitOpen> {
        self.lock(|machine| {
            machine.check(now)?;
            let before = machine.state();
            let is_probe = before != BreakerState::Closed;
            if is_probe {
                machine.enter(Phase::HalfOpen { is_probing: true });
            }
            Ok(CircuitPermit {
                generation: machine.generation,
                is_probe,
                changed: (before == BreakerState::Open).then(|| {
                    BreakerChange::new(
                        BreakerState::Open,
                        BreakerState::HalfOpen,
                        "a probe is sent".to_owned(),
                        None,
                    )
                }),
            })
        })
    }

    /// Records the outcome of a call. Returns the change of the circuit's state, if it caused one.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a permit is for one call, and this is its end"
    )]
    pub fn report(
        &self,
        permit: CircuitPermit,
        outcome: CircuitOutcome,
        now: Instant,
        settings: &BreakerSettings,
        jitter: &Jitter,
    ) -> Option<BreakerChange> {
        self.lock(|machine| {
            if permit.generation != machine.generation {
                return None;
            }
            let from = machine.state();
            let reason = if permit.is_probe {
                machine.end_probe(outcome, now, settings, jitter);
                let ended = if outcome == CircuitOutcome::Failure {
                    "failed"
                } else {
                    "was answered"
                };
                format!("the probe {ended}")
            } else if let Phase::Closed(counts) = &mut machine.phase
                && let Some(reason) = counts.record(outcome, now, settings)
            {
                machine.open(now, settings, jitter);
                reason
            } else {
                return None;
            };
            (permit.generation != machine.generation).then(|| {
                BreakerChange::new(
                    from,
                    machine.state(),
                    reason,
                    machine.check(now).err().and_then(|open| open.retry_after),
                )
            })
        })
    }

    fn lock<T>(&self, act: impl FnOnce(&mut Machine) -> T) -> T {
        act(&mut self.0.lock())
    }
}

impl CircuitPermit {
    /// Returns the change of the circuit's state that this permit caused, if it caused one.
    #[must_use]
    pub fn changed(&self) -> Option<&BreakerChange> {
        self.changed.as_ref()
    }
}

impl Machine {
    fn state(&self) -> BreakerState {
        match self.phase {
            Phase::Closed(_) => BreakerState::Closed,
            Phase::Open { .. } => BreakerState::Open,
            Phase::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    fn check(&self, now: Instant) -> Result<(), CircuitOpen> {
        match self.phase {
            Phase::Open { until } if now < until => Err(CircuitOpen {
                retry_after: Some(until.since(now)),
            }),
            Phase::HalfOpen { is_probing: true } => Err(CircuitOpen { retry_after: None }),
            _ => Ok(()),
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.generation += 1;
    }

    fn end_probe(
        &mut self,
        outcome: CircuitOutcome,
        now: Instant,
        settings: &BreakerSettings,
        jitter: &Jitter,
    ) {
        match outcome {
            CircuitOutcome::Success | CircuitOutcome::Reachable => {
                self.n_openings = 0;
                self.enter(Phase::default());
            }
            CircuitOutcome::Failure => self.open(now, settings, jitter),
            CircuitOutcome::Unknown => self.phase = Phase::HalfOpen { is_probing: false },
        }
    }

    fn open(&mut self, now: Instant, settings: &BreakerSettings, jitter: &Jitter) {
        let pause = settings.pause.saturating_mul(1 << self.n_openings.min(31));
        let pause = pause.min(settings.max_pause);
        self.n_openings = self.n_openings.saturating_add(1);
        self.enter(Phase::Open {
            until: now + pause + jitter.up_to(pause / 5),
        });
    }
}

/// Number of buckets of the sliding window. The current bucket is not full, so the window covers nine to ten of them.
const BUCKETS: usize = 10;

/// Counters of a closed circuit: failures in a row, and a sliding window.
#[derive(Debug, Default)]
struct Counts {
    n_failures_in_row: u32,
    /// Number of the bucket of time to which the first entries belong.
    bucket: u128,
    n_calls: [u32; BUCKETS],
    n_failures: [u32; BUCKETS],
}

impl Counts {
    /// Counts a call. Returns the reason for which the circuit opens, if this is one failure too many.
    fn record(
        &mut self,
        outcome: CircuitOutcome,
        now: Instant,
        settings: &BreakerSettings,
    ) -> Option<String> {
        let is_failure = match outcome {
            CircuitOutcome::Success => false,
            CircuitOutcome::Failure => true,
            CircuitOutcome::Reachable | CircuitOutcome::Unknown => return None,
        };
        self.advance(now, settings.window);
        self.n_calls[0] += 1;
        if !is_failure {
            self.n_failures_in_row = 0;
            return None;
        }
        self.n_failures[0] += 1;
        self.n_failures_in_row += 1;
        let sum = |buckets: &[u32]| buckets.iter().copied().map(u64::from).sum::<u64>();
        let (n_calls, n_failures) = (sum(&self.n_calls), sum(&self.n_failures));
        if self.n_failures_in_row >= settings.max_failures {
            return Some(format!("{} failures in a row", self.n_failures_in_row));
        }
        let is_share_too_large = n_calls >= settings.min_calls.into()
            && n_failures * 100 >= n_calls * u64::from(settings.failure_percent);
        is_share_too_large.then(|| {
            format!(
                "{n_failures} of {n_calls} calls failed within {:?}",
                settings.window
            )
        })
    }

    /// Moves the window to the current bucket.
    fn advance(&mut self, now: Instant, window: Duration) {
        let length = (window.as_nanos() / BUCKETS as u128).max(1);
        let bucket = now.since(Instant::default()).as_nanos() / length;
        // The number decreases only if the length of the window has changed: then the counts cannot be assigned to buckets.
        let n_gone = bucket
            .checked_sub(self.bucket)
            .map_or(BUCKETS, |gone| gone.min(BUCKETS as u128) as usize);
        self.bucket = bucket;
        for buckets in [&mut self.n_calls, &mut self.n_failures] {
            buckets.rotate_right(n_gone % BUCKETS);
            buckets[..n_gone].fill(0);
        }
    }
}
