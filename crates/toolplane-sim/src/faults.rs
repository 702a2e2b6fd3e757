use std::time::Duration;

/// What becomes of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptFate {
    /// It is done and answered.
    Done,
    /// Nobody can be reached: nothing is sent.
    Refused,
    /// It is sent, not done, and the connection breaks.
    LostBefore,
    /// It is done, and the connection breaks before the answer.
    LostAfter,
    /// It is sent, not done, and never answered.
    HangsBefore,
    /// It is done and never answered.
    HangsAfter,
    /// It is answered: not now.
    Busy,
    /// It is answered: too often.
    Limited(Duration),
    /// It is answered: it failed, and nothing was done.
    Failed,
}

/// The fate of an attempt, and how long each half of its way takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptPlan {
    pub(crate) fate: AttemptFate,
    pub(crate) there: Duration,
    pub(crate) back: Duration,
}

/// How hostile the world of a seed is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FaultSchedule {
    seed: u64,
    /// Of a hundred attempts, how many have a fault.
    faults: u32,
    /// Of a hundred spans of time, in how many nobody can be reached.
    outages: u32,
}

/// How long an outage lasts.
const SPAN: Duration = Duration::from_secs(3);

impl FaultSchedule {
    pub(crate) fn of(seed: u64) -> Self {
        let mut chance = chance(seed, 1, 0);
        Self {
            seed,
            faults: [0, 2, 10, 30, 60, 95][chance.usize(0..6)],
            outages: [0, 0, 10, 50][chance.usize(0..4)],
        }
    }

    /// What becomes of the n-th attempt of an operation that arrives at this time: it depends on nothing else.
    pub(crate) fn course(self, operation: usize, n: u64, at: Duration) -> AttemptPlan {
        let mut chance = chance(self.seed, 2 + operation as u64, n);
        let span = at.as_millis() / SPAN.as_millis();
        let is_out = self::chance(self.seed, 0, span as u64).u32(0..100) < self.outages;
        let faulty = chance.u32(0..100) < self.faults;
        let fate = match (is_out, faulty) {
            (true, _) => [
                AttemptFate::Refused,
                AttemptFate::Refused,
                AttemptFate::LostBefore,
                AttemptFate::HangsBefore,
            ][chance.usize(0..4)],
            (_, false) => AttemptFate::Done,
            (_, true) => [
                AttemptFate::Refused,
                AttemptFate::LostBefore,
                AttemptFate::LostAfter,
                AttemptFate::HangsBefore,
                AttemptFate::HangsAfter,
                AttemptFate::Busy,
                AttemptFate::Limited(Duration::from_millis(chance.u64(0..4_000))),
                AttemptFate::Failed,
            ][chance.usize(0..8)],
        };
        // Nearly all are quick, some take about as long as they may.
        let slowest = if chance.u32(0..20) == 0 { 6_000 } else { 60 };
        AttemptPlan {
            fate,
            there: Duration::from_millis(chance.u64(0..slowest)),
            back: Duration::from_millis(chance.u64(0..slowest / 2)),
        }
    }
}

/// A source of chance of its own for each use, so that one use does not change another.
pub(crate) fn chance(seed: u64, stream: u64, n: u64) -> fastrand::Rng {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = seed
        .wrapping_mul(MIX)
        .wrapping_add(stream)
        .wrapping_mul(MIX)
        .wrapping_add(n)
        .wrapping_mul(MIX);
    fastrand::Rng::with_seed(mixed ^ (mixed >> 31))
}
