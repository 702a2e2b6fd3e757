use std::time::Duration;

use super::BreakerSettings;
use tool_core::{BreakerChange, BreakerState, Instant, Jitter};

use crate::sync::Mutex;

/// The state of one circuit breaker. It decides and counts; what a failure is, its users say.
///
/// # States
/// *Closed*: calls pass. It opens after so many failures in a row, or when the share of failures among the calls of the
/// window is too large. *Open*: nothing passes until the pause is over. *Half open*: exactly one call passes, the probe.
/// If it succeeds, the circuit closes and forgets; if it fails, the circuit opens for twice as long; if nothing comes of
/// it, the next call is the probe.
///
/// What began in an earlier state is not counted in a later one.
#[derive(Debug, Default)]
pub struct Circuit(Mutex<Machine>);

/// Leave to make one call. Give it back with [`Circuit::report`], whatever came of the call.
#[derive(Debug)]
#[must_use = "a probe that is not reported keeps all others away"]
pub struct Permit {
    generation: u64,
    is_probe: bool,
    changed: Option<BreakerChange>,
}

/// What a call says of the health of what it was made to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It worked.
    Healthy,
    /// It did not work.
    Ill,
    /// The call was refused for what it was: this counts neither way, but a probe need not do better.
    Alive,
    /// Nothing came of the call.
    Unknown,
}

/// The circuit lets no call pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldBack {
    /// How long until one may pass; not known while a probe is under way.
    pub retry_after: Option<Duration>,
}

#[derive(Debug, Default)]
struct Machine {
    phase: Phase,
    /// Grows with every change of the phase but that of a probe that came to nothing.
    generation: u64,
    /// How often it has opened since it was last closed.
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
    /// Tells whether a call could pass now, and takes nothing.
    ///
    /// # Errors
    /// When none could.
    pub fn peek(&self, now: Instant) -> Result<(), HeldBack> {
        self.lock(|machine| machine.check(now))
    }

    /// Takes leave for a call.
    ///
    /// # Errors
    /// When none can pass now.
    pub fn acquire(&self, now: Instant) -> Result<Permit, HeldBack> {
        self.lock(|machine| {
            machine.check(now)?;
            let before = machine.state();
            let is_probe = before != BreakerState::Closed;
            if is_probe {
                machine.enter(Phase::HalfOpen { is_probing: true });
            }
            Ok(Permit {
                generation: machine.generation,
                is_probe,
                changed: (before == BreakerState::Open).then(|| BreakerChange {
                    from: BreakerState::Open,
                    to: BreakerState::HalfOpen,
                    reason: "a call tries it out".to_owned(),
                    pause: None,
                }),
            })
        })
    }

    /// Takes note of how a call went, and tells how the circuit's state has changed by it, if it has.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a permit is for one call, and this is its end"
    )]
    pub fn report(
        &self,
        permit: Permit,
        verdict: Verdict,
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
                machine.probed(verdict, now, settings, jitter);
                let ended = if verdict == Verdict::Ill {
                    "failed"
                } else {
                    "was answered"
                };
                format!("the call that tried it out {ended}")
            } else if let Phase::Closed(counts) = &mut machine.phase
                && let Some(reason) = counts.opens(verdict, now, settings)
            {
                machine.open(now, settings, jitter);
                reason
            } else {
                return None;
            };
            (permit.generation != machine.generation).then(|| BreakerChange {
                from,
                to: machine.state(),
                reason,
                pause: machine.check(now).err().and_then(|held| held.retry_after),
            })
        })
    }

    fn lock<T>(&self, act: impl FnOnce(&mut Machine) -> T) -> T {
        act(&mut self.0.lock())
    }
}

impl Permit {
    /// How the circuit's state has changed when this was given, if it has.
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

    fn check(&self, now: Instant) -> Result<(), HeldBack> {
        match self.phase {
            Phase::Open { until } if now < until => Err(HeldBack {
                retry_after: Some(until.since(now)),
            }),
            Phase::HalfOpen { is_probing: true } => Err(HeldBack { retry_after: None }),
            _ => Ok(()),
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.generation += 1;
    }

    fn probed(&mut self, verdict: Verdict, now: Instant, settings: &BreakerSettings, jitter: &Jitter) {
        match verdict {
            Verdict::Healthy | Verdict::Alive => {
                self.n_openings = 0;
                self.enter(Phase::default());
            }
            Verdict::Ill => self.open(now, settings, jitter),
            Verdict::Unknown => self.phase = Phase::HalfOpen { is_probing: false },
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

/// Into how many parts the window is cut. The present one is not full, so it reaches back nine to ten parts.
const PARTS: usize = 10;

/// What happened while closed.
#[derive(Debug, Default)]
struct Counts {
    n_failures_in_row: u32,
    /// Which part of time the first entry is of.
    part: u128,
    n_calls: [u32; PARTS],
    n_failures: [u32; PARTS],
}

impl Counts {
    /// Counts a call; says why the circuit opens if it is one failure too many.
    fn opens(&mut self, verdict: Verdict, now: Instant, settings: &BreakerSettings) -> Option<String> {
        let is_failure = match verdict {
            Verdict::Healthy => false,
            Verdict::Ill => true,
            Verdict::Alive | Verdict::Unknown => return None,
        };
        self.advance(now, settings.window);
        self.n_calls[0] += 1;
        if !is_failure {
            self.n_failures_in_row = 0;
            return None;
        }
        self.n_failures[0] += 1;
        self.n_failures_in_row += 1;
        let sum = |parts: &[u32]| parts.iter().copied().map(u64::from).sum::<u64>();
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

    fn advance(&mut self, now: Instant, window: Duration) {
        let length = (window.as_nanos() / PARTS as u128).max(1);
        let part = now.since(Instant::default()).as_nanos() / length;
        // Less only where the window has become another: then nothing is known of where the counts belong.
        let gone = part
            .checked_sub(self.part)
            .map_or(PARTS, |gone| gone.min(PARTS as u128) as usize);
        self.part = part;
        for parts in [&mut self.n_calls, &mut self.n_failures] {
            parts.rotate_right(gone % PARTS);
            parts[..gone].fill(0);
        }
    }
}
