//! Figures of a tool that routes measure themselves. Kept in the state of the tool, so that all routes share them and a reload
//! keeps them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tool_core::{Instant, Tool};

/// Time after which a call counts a third (1/e) of what it did.
const DECAY: Duration = Duration::from_secs(15);

/// Recent calls of a tool by routes: averages with exponential decay, and the calls that are on their way.
///
/// Health counts all attempts of the last minutes. These figures show within a few calls that a tool has become slow or fails.
#[derive(Debug, Default)]
pub(crate) struct RouteFigures {
    n_in_flight: AtomicU32,
    sums: Mutex<Sums>,
    /// Number of consecutive failures.
    n_failed: AtomicU32,
    /// Time until which the tool rests after failures, in milliseconds since the start of the clock; 0 if it does not.
    rests_until: AtomicU64,
    /// Copy of the sums that is read without a lock: weight and time, then mean latency and share of failures.
    weight_and_time: AtomicU64,
    means: AtomicU64,
}

/// Number of consecutive failures after which a tool rests: a single one may be an accident.
const MAX_FAILED: u32 = 2;
/// Time for which a tool rests at first. It doubles with every further failure.
const REST: Duration = Duration::from_secs(1);
/// Maximum time for which a tool rests.
const MAX_REST: Duration = Duration::from_secs(30);

/// Sums in which older calls count less.
#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    weight: f64,
    latency: f64,
    failures: f64,
    at: Instant,
}

/// Averages of recent calls.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Recent {
    /// Number of calls, older ones counting less.
    pub(crate) weight: f64,
    /// Mean latency.
    pub(crate) latency: Duration,
    /// Share of failed calls, from 0 to 1.
    pub(crate) failures: f64,
}

/// A call on its way. Counts until it is dropped.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<RouteFigures>);

impl RouteFigures {
    /// Returns the figures of a tool.
    pub(crate) fn of(tool: &Tool) -> Arc<Self> {
        tool.state().get_or_init(Self::default)
    }

    pub(crate) fn n_in_flight(&self) -> u32 {
        self.n_in_flight.load(Ordering::Relaxed)
    }

    /// Counts a call that begins.
    pub(crate) fn begin(self: &Arc<Self>) -> InFlight {
        self.n_in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(self.clone())
    }

    /// Returns the time for which the tool still rests, if it does: it failed several times in a row.
    pub(crate) fn rest(&self, now: Instant) -> Option<Duration> {
        let until = self.rests_until.load(Ordering::Relaxed);
        let left = until.saturating_sub(whole_milliseconds(now));
        (left > 0).then(|| Duration::from_millis(left))
    }

    /// Records the end of a call.
    pub(crate) fn record(&self, now: Instant, latency: Duration, has_failed: bool) {
        if has_failed {
            let n_failed = self.n_failed.fetch_add(1, Ordering::Relaxed).saturating_add(1);
            if let Some(more) = n_failed.checked_sub(MAX_FAILED) {
                let rest = (REST * 2_u32.pow(more.min(10))).min(MAX_REST);
                self.rests_until
                    .store(whole_milliseconds(now + rest), Ordering::Relaxed);
            }
        } else if self.n_failed.load(Ordering::Relaxed) > 0 {
            self.n_failed.store(0, Ordering::Relaxed);
            self.rests_until.store(0, Ordering::Relaxed);
        }
        let mut sums = self.sums.lock();
        let kept = decay(sums.at, now);
        sums.weight = sums.weight * kept + 1.0;
        sums.latency = sums.latency * kept + latency.as_secs_f64();
        sums.failures = sums.failures * kept + f64::from(u8::from(has_failed));
        sums.at = sums.at.max(now);
        let mean = (sums.latency / sums.weight) as f32;
        let failures = (sums.failures / sums.weight) as f32;
        // Whole milliseconds since the start of the clock fit for 49 days; then they begin again, and a call counts as old.
        self.means
            .store(pack(mean.to_bits(), failures.to_bits()), Ordering::Relaxed);
        let weight = (sums.weight as f32).to_bits();
        self.weight_and_time
            .store(pack(weight, milliseconds(sums.at)), Ordering::Relaxed);
    }

    /// Returns the averages now.
    pub(crate) fn recent(&self, now: Instant) -> Recent {
        let (weight, at) = unpack(self.weight_and_time.load(Ordering::Relaxed));
        if weight == 0 {
            return Recent::default();
        }
        let (latency, failures) = unpack(self.means.load(Ordering::Relaxed));
        let elapsed = Duration::from_millis(u64::from(milliseconds(now).wrapping_sub(at)));
        // Another thread may have read a later time than this one.
        let elapsed = if elapsed > Duration::from_secs(u64::from(u32::MAX / 2000)) {
            Duration::ZERO
        } else {
            elapsed
        };
        Recent {
            weight: f64::from(f32::from_bits(weight)) * kept_after(elapsed),
            latency: Duration::try_from_secs_f32(f32::from_bits(latency)).unwrap_or_default(),
            failures: f64::from(f32::from_bits(failures)),
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.n_in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

fn decay(before: Instant, now: Instant) -> f64 {
    kept_after(now.since(before))
}

/// Returns the weight of a call after this time.
fn kept_after(elapsed: Duration) -> f64 {
    (-elapsed.as_secs_f64() / DECAY.as_secs_f64()).exp()
}

fn whole_milliseconds(at: Instant) -> u64 {
    u64::try_from(at.since(Instant::default()).as_millis()).unwrap_or(u64::MAX)
}

fn milliseconds(at: Instant) -> u32 {
    // The low bits on purpose: see `record`.
    whole_milliseconds(at) as u32
}

fn pack(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn unpack(packed: u64) -> (u32, u32) {
    ((packed >> 32) as u32, packed as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::since_start(Duration::from_secs(seconds))
    }

    #[test]
    fn older_calls_count_less() {
        let figures = RouteFigures::default();
        assert_eq!(figures.recent(at(0)), Recent::default());
        for _ in 0..10 {
            figures.record(at(100), Duration::from_millis(100), false);
        }
        let recent = figures.recent(at(100));
        assert!((recent.weight - 10.0).abs() < 1e-3, "{recent:?}");
        assert!(recent.latency.abs_diff(Duration::from_millis(100)) < Duration::from_micros(1));
        // 30 seconds later, the ten count as 1.35 together.
        assert!((figures.recent(at(130)).weight - 1.353).abs() < 1e-2);
        figures.record(at(130), Duration::from_secs(1), true);
        let recent = figures.recent(at(130));
        assert!((recent.failures - 1.0 / 2.353).abs() < 1e-3, "{recent:?}");
        assert!(recent.latency > Duration::from_millis(450), "{recent:?}");
    }

    #[test]
    fn a_tool_that_fails_again_and_again_rests() {
        let figures = RouteFigures::default();
        let fails = |seconds| figures.record(at(seconds), Duration::ZERO, true);
        fails(10);
        assert_eq!(figures.rest(at(10)), None);
        fails(10);
        assert_eq!(figures.rest(at(10)), Some(Duration::from_secs(1)));
        assert_eq!(figures.rest(at(11)), None);
        for _ in 0..20 {
            fails(11);
        }
        assert_eq!(figures.rest(at(11)), Some(MAX_REST));
        figures.record(at(12), Duration::ZERO, false);
        assert_eq!(figures.rest(at(12)), None);
    }

    #[test]
    fn a_call_is_on_its_way_until_it_is_dropped() {
        let figures = Arc::new(RouteFigures::default());
        let call = figures.begin();
        assert_eq!(figures.n_in_flight(), 1);
        drop(call);
        assert_eq!(figures.n_in_flight(), 0);
    }
}
