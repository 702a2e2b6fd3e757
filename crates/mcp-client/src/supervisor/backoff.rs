use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher as _, Hasher as _},
    time::Duration,
};

use tokio::time::Instant;

/// Exponential backoff of restarts with jitter: at most six starts in the first minute, then one a minute.
#[derive(Debug)]
pub(super) struct Backoff {
    failures: u32,
    random: u64,
}

/// Uptime after which a server counts as stable, so that its end is not a failed start.
pub(super) const STABLE_AFTER: Duration = Duration::from_secs(60);
const INITIAL: Duration = Duration::from_secs(1);
pub(super) const MAX_PAUSE: Duration = Duration::from_secs(60);

impl Backoff {
    pub(super) fn new(seed: Option<u64>) -> Self {
        let random = seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
        Self { failures: 0, random }
    }

    /// `true` if the server has failed since it was last stable.
    pub(super) fn has_failures(&self) -> bool {
        self.failures > 0
    }

    /// Resets the failures of a server that is stable.
    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Records the failure of a start and returns the pause before the next one. Jitter only extends the pause, so that
    /// the limits on the number of starts hold.
    pub(super) fn record_failure(&mut self, start: Option<Instant>, now: Instant) -> Duration {
        if start.is_some_and(|start| now - start >= STABLE_AFTER) {
            self.reset();
            return Duration::ZERO;
        }
        self.failures += 1;
        let doubled = INITIAL * 2_u32.pow((self.failures - 1).min(16));
        let pause = if self.failures > 6 {
            MAX_PAUSE
        } else {
            doubled.min(MAX_PAUSE)
        };
        pause + pause.mul_f64(0.25 * self.fraction())
    }

    /// Next number of a splitmix64 sequence (Steele, Lea and Flood, 2014), from 0 to 1.
    fn fraction(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_fails_at_once_is_started_six_times_in_a_minute_and_then_once() {
        for seed in 0..200 {
            let begin = Instant::now();
            let mut backoff = Backoff::new(Some(seed));
            let mut now = begin;
            let mut starts = Vec::new();
            while now - begin < Duration::from_secs(600) {
                starts.push((now - begin).as_secs_f64());
                now += backoff.record_failure(Some(now), now);
            }
            assert!(
                starts.iter().filter(|start| **start < 60.0).count() <= 6,
                "{starts:?}"
            );
            for pair in starts[6..].windows(2) {
                assert!((60.0..=75.0).contains(&(pair[1] - pair[0])), "{starts:?}");
            }
        }
    }

    #[test]
    fn a_server_that_lived_for_a_minute_is_started_again_at_once() {
        let mut backoff = Backoff::new(Some(1));
        let start = Instant::now();
        assert!(backoff.record_failure(Some(start), start) >= INITIAL);
        assert_eq!(
            backoff.record_failure(Some(start), start + STABLE_AFTER),
            Duration::ZERO
        );
        assert!(backoff.record_failure(Some(start), start) < INITIAL * 2);
    }

    #[test]
    fn one_seed_gives_one_sequence() {
        let pauses = |seed| {
            let mut backoff = Backoff::new(Some(seed));
            let start = Instant::now();
            [
                backoff.record_failure(None, start),
                backoff.record_failure(None, start),
            ]
        };
        assert_eq!(pauses(1), pauses(1));
        assert_ne!(pauses(1), pauses(2));
    }
}
