use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tool_core::{CheckReport, HealthReport, Instant, LatencyHistogram};

/// Number of buckets of a window. The newest bucket is not full, so the window covers nine to ten buckets.
const N_BUCKETS: usize = 10;

/// Sliding window of the attempts of one tool or upstream, as a ring of buckets. Stored in the state that a reload carries
/// over.
#[derive(Debug, Default)]
pub(super) struct HealthWindow {
    /// Id of the tracker that registered the window; 0 for none.
    tracker: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Length of the window for which the buckets are cut.
    length: Duration,
    buckets: [Bucket; N_BUCKETS],
    check: Option<CheckReport>,
}

/// Counts of one tenth of the window.
#[derive(Debug, Default)]
struct Bucket {
    /// Number of the bucket's time span, counted from the start of the clock.
    number: u64,
    n_calls: u32,
    n_failures: u32,
    n_reported: u32,
    total: Duration,
    latencies: LatencyHistogram,
}

/// How an attempt is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountAs {
    /// Answered.
    Answered,
    /// Answered with an error that the tool itself reports.
    Reported,
    /// Failed.
    Failed,
}

impl HealthWindow {
    /// Registers the window with a tracker. Returns `true` if it was not registered with it before.
    pub(super) fn register(&self, tracker: u64) -> bool {
        // The load comes first: a swap alone would make every call write to a cache line that all calls read.
        self.tracker.load(Ordering::Relaxed) != tracker
            && self.tracker.swap(tracker, Ordering::Relaxed) != tracker
    }

    pub(super) fn record(&self, now: Instant, length: Duration, count_as: CountAs, took: Duration) {
        let number = bucket_number(now, length);
        self.lock(|inner| {
            inner.resize(now, length);
            let bucket = inner.bucket(number);
            bucket.n_calls = bucket.n_calls.saturating_add(1);
            match count_as {
                CountAs::Answered => {}
                CountAs::Reported => bucket.n_reported = bucket.n_reported.saturating_add(1),
                CountAs::Failed => bucket.n_failures = bucket.n_failures.saturating_add(1),
            }
            bucket.total = bucket.total.saturating_add(took);
            bucket.latencies.add(took);
        });
    }

    /// Records a health check.
    pub(super) fn record_check(&self, succeeded: bool, took: Duration) {
        self.lock(|inner| {
            let before = inner.check.map_or(0, |check| check.n_failures);
            let n_failures = if succeeded { 0 } else { before.saturating_add(1) };
            inner.check = Some(CheckReport::new(n_failures, took));
        });
    }

    /// Forgets the results of health checks.
    pub(super) fn forget_checks(&self) {
        self.lock(|inner| inner.check = None);
    }

    pub(super) fn report(&self, now: Instant, length: Duration) -> HealthReport {
        let number = bucket_number(now, length);
        let mut report = HealthReport::UNKNOWN;
        let (mut latencies, mut total) = (LatencyHistogram::default(), Duration::ZERO);
        self.lock(|inner| {
            inner.resize(now, length);
            // A bucket can be later than `now` only if another thread read the clock later.
            let current = inner
                .buckets
                .iter()
                .filter(|bucket| bucket.number <= number && number - bucket.number < N_BUCKETS as u64);
            for bucket in current {
                report.n_calls += u64::from(bucket.n_calls);
                report.n_failures += u64::from(bucket.n_failures);
                report.n_reported += u64::from(bucket.n_reported);
                total = total.saturating_add(bucket.total);
                latencies.merge(&bucket.latencies);
            }
            report.check = inner.check;
        });
        if report.n_calls > 0 {
            let nanoseconds = total.as_nanos() / u128::from(report.n_calls);
            report.mean = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
        }
        report.p50 = latencies.percentile(50);
        report.p95 = latencies.percentile(95);
        report.p99 = latencies.percentile(99);
        report.with_status()
    }

    fn lock<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.inner.lock())
    }
}

impl Inner {
    /// Returns the bucket of this number. A bucket with another number in its slot is older than the window and is reset.
    fn bucket(&mut self, number: u64) -> &mut Bucket {
        let bucket = &mut self.buckets[(number % N_BUCKETS as u64) as usize];
        if bucket.number != number {
            bucket.reset(number);
        }
        bucket
    }

    /// Distributes the attempts to the buckets of a window of this length, if the length has changed. All attempts of an old
    /// bucket count as its last ones, so they are dropped up to one old bucket too late and never too early.
    fn resize(&mut self, now: Instant, length: Duration) {
        if self.length == length {
            return;
        }
        let before = std::mem::replace(&mut self.length, length);
        let (newest, nanos, now) = (
            bucket_number(now, length),
            bucket_length(length),
            since_start(now),
        );
        for bucket in std::mem::take(&mut self.buckets)
            .iter()
            .filter(|bucket| bucket.n_calls > 0)
        {
            let end = (bucket.number + 1).saturating_mul(bucket_length(before)) - 1;
            let number = end.min(now) / nanos;
            if newest - number < N_BUCKETS as u64 {
                self.bucket(number).merge(bucket);
            }
        }
    }
}

impl Bucket {
    fn merge(&mut self, other: &Self) {
        self.n_calls = self.n_calls.saturating_add(other.n_calls);
        self.n_failures = self.n_failures.saturating_add(other.n_failures);
        self.n_reported = self.n_reported.saturating_add(other.n_reported);
        self.total = self.total.saturating_add(other.total);
        self.latencies.merge(&other.latencies);
    }

    fn reset(&mut self, number: u64) {
        self.number = number;
        (self.n_calls, self.n_failures, self.n_reported) = (0, 0, 0);
        self.total = Duration::ZERO;
        self.latencies.clear();
    }
}

fn bucket_number(now: Instant, window: Duration) -> u64 {
    since_start(now) / bucket_length(window)
}

/// Returns the length of one bucket of a window, in nanoseconds.
fn bucket_length(window: Duration) -> u64 {
    (nanoseconds(window) / N_BUCKETS as u64).max(1)
}

fn since_start(now: Instant) -> u64 {
    nanoseconds(now.since(Instant::default()))
}

pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
