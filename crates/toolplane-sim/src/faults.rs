use std::time::Duration;

/// Fate of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptFate {
    /// Executed and answered.
    Done,
    /// Unreachable: nothing is sent.
    Refused,
    /// Sent and not executed; the connection breaks.
    LostBefore,
    /// Executed; the connection breaks before the answer.
    LostAfter,
    /// Sent and not executed; never answered.
    HangsBefore,
    /// Executed; never answered.
    HangsAfter,
    /// Answered as unavailable, not executed.
    Busy,
    /// Answered as rate limited, not executed.
    Limited(Duration),
    /// Answered as failed, not executed.
    Failed,
}

/// Fate of an attempt, and the duration of each half of its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptPlan {
    pub(crate) fate: AttemptFate,
    pub(crate) there: Duration,
    pub(crate) back: Duration,
}

/// Seeded faults and outages of a world.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FaultSchedule {
    seed: u64,
    /// Percentage of attempts with a fault.
    faults: u32,
    /// Percentage of time spans with an outage.
    outages: u32,
}

/// Duration of an outage.
const SPAN: Duration = Duration::from_secs(3);

impl FaultSchedule {
    pub(crate) fn from_seed(seed: u64) -> Self {
        let mut chance = chance(seed, 1, 0);
        Self {
            seed,
            faults: [0, 2, 10, 30, 60, 95][chance.usize(0..6)],
            outages: [0, 0, 10, 50][chance.usize(0..4)],
        }
    }

    /// Returns the plan of the n-th attempt of an operation at this time. It depends on nothing else.
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
        // Nearly all attempts are quick; some take about as long as their limit.
        let slowest = if chance.u32(0..20) == 0 { 6_000 } else { 60 };
        AttemptPlan {
            fate,
            there: Duration::from_millis(chance.u64(0..slowest)),
            back: Duration::from_millis(chance.u64(0..slowest / 2)),
        }
    }
}

/// Returns an independent random generator for each use, so that one use does not change another.
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
