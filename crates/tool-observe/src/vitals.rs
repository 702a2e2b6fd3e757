use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tool_core::{CheckReport, HealthReport, Instant};

use crate::times::Times;

/// Into how many parts the window is cut. The present one is not full, so it reaches back nine to ten parts.
const PARTS: usize = 10;

/// What is remembered of one tool or upstream. It lies in the state that a reload carries over.
#[derive(Debug, Default)]
pub(crate) struct Vitals {
    /// The book that knows of it; 0 for none.
    pub(crate) book: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The window that the parts are of.
    window: Duration,
    parts: [Part; PARTS],
    check: Option<CheckReport>,
}

/// What happened in one part of the window.
#[derive(Debug, Default)]
struct Part {
    /// Which part of time it is.
    number: u64,
    n_calls: u32,
    n_failures: u32,
    n_reported: u32,
    total: Duration,
    times: Times,
}

/// As what an attempt counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// It was answered.
    Answered,
    /// It was answered, and the tool reports a failure in its own words.
    Reported,
    /// It failed.
    Failed,
}

impl Vitals {
    /// Takes note that a book knows of it; true if it did not before.
    pub(crate) fn is_new_to(&self, book: u64) -> bool {
        // Looked at first: an exchange would have every call write to what all of them read.
        self.book.load(Ordering::Relaxed) != book && self.book.swap(book, Ordering::Relaxed) != book
    }

    pub(crate) fn record(&self, now: Instant, window: Duration, mark: Mark, took: Duration) {
        let number = part_of(now, window);
        self.lock(|inner| {
            inner.refit(now, window);
            let part = inner.part(number);
            part.n_calls = part.n_calls.saturating_add(1);
            match mark {
                Mark::Answered => {}
                Mark::Reported => part.n_reported = part.n_reported.saturating_add(1),
                Mark::Failed => part.n_failures = part.n_failures.saturating_add(1),
            }
            part.total = part.total.saturating_add(took);
            part.times.add(took);
        });
    }

    /// Takes note of a check.
    pub(crate) fn checked(&self, succeeded: bool, took: Duration) {
        self.lock(|inner| {
            let before = inner.check.map_or(0, |check| check.n_failures);
            let n_failures = if succeeded { 0 } else { before.saturating_add(1) };
            inner.check = Some(CheckReport { n_failures, took });
        });
    }

    /// Forgets what checks found.
    pub(crate) fn unchecked(&self) {
        self.lock(|inner| inner.check = None);
    }

    pub(crate) fn report(&self, now: Instant, window: Duration) -> HealthReport {
        let number = part_of(now, window);
        let mut report = HealthReport::UNKNOWN;
        let (mut times, mut total) = (Times::default(), Duration::ZERO);
        self.lock(|inner| {
            inner.refit(now, window);
            // None is later than now, unless another thread has a later one.
            let present = inner
                .parts
                .iter()
                .filter(|part| part.number <= number && number - part.number < PARTS as u64);
            for part in present {
                report.n_calls += u64::from(part.n_calls);
                report.n_failures += u64::from(part.n_failures);
                report.n_reported += u64::from(part.n_reported);
                total = total.saturating_add(part.total);
                times.merge(&part.times);
            }
            report.check = inner.check;
        });
        if report.n_calls > 0 {
            let nanoseconds = total.as_nanos() / u128::from(report.n_calls);
            report.mean = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
        }
        report.p50 = times.percentile(50);
        report.p95 = times.percentile(95);
        report.p99 = times.percentile(99);
        report.with_status()
    }

    fn lock<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.inner.lock())
    }
}

impl Inner {
    /// The part of this number; what was in its place is older than the window.
    fn part(&mut self, number: u64) -> &mut Part {
        let part = &mut self.parts[(number % PARTS as u64) as usize];
        if part.number != number {
            part.begin(number);
        }
        part
    }

    /// Cuts what is remembered into the parts of this window, if they are of another. Attempts of one part count as
    /// its last ones, so that they are forgotten up to a part of the window before too late, and none too early.
    fn refit(&mut self, now: Instant, window: Duration) {
        if self.window == window {
            return;
        }
        let before = std::mem::replace(&mut self.window, window);
        let (present, length, now) = (part_of(now, window), part_length(window), since_start(now));
        for part in std::mem::take(&mut self.parts)
            .iter()
            .filter(|part| part.n_calls > 0)
        {
            let end = (part.number + 1).saturating_mul(part_length(before)) - 1;
            let number = end.min(now) / length;
            if present - number < PARTS as u64 {
                self.part(number).merge(part);
            }
        }
    }
}

impl Part {
    fn merge(&mut self, other: &Self) {
        self.n_calls = self.n_calls.saturating_add(other.n_calls);
        self.n_failures = self.n_failures.saturating_add(other.n_failures);
        self.n_reported = self.n_reported.saturating_add(other.n_reported);
        self.total = self.total.saturating_add(other.total);
        self.times.merge(&other.times);
    }

    fn begin(&mut self, number: u64) {
        self.number = number;
        (self.n_calls, self.n_failures, self.n_reported) = (0, 0, 0);
        self.total = Duration::ZERO;
        self.times.clear();
    }
}

fn part_of(now: Instant, window: Duration) -> u64 {
    since_start(now) / part_length(window)
}

/// How many nanoseconds a part of this window has.
fn part_length(window: Duration) -> u64 {
    (nanoseconds(window) / PARTS as u64).max(1)
}

fn since_start(now: Instant) -> u64 {
    nanoseconds(now.since(Instant::default()))
}

pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
