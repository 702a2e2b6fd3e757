use std::{collections::BTreeMap, time::Duration};

use parking_lot::Mutex;
use tool_core::Instant;

/// Budget for the retries of one upstream: a tenth of its calls, or one a second if that is more (Finagle, `RetryBudget`).
///
/// The maximum number of attempts limits the retries of one call; the budget limits the retries of all calls together. While an
/// upstream is down, every call fails, and retries would be the larger part of the load on a recovering upstream. The numbers
/// are those of tower's `TpsBudget`, but the floor and the share are not added up: ten retries for a hundred calls are the
/// tenth already.
///
/// # Time
/// Calls of the last ten seconds earn retries. A retry is charged to the ten seconds before and after its own time, which may be
/// later than the decision: calls that wait for the same moment, as a server asked them to, count together. Both windows slide
/// in steps of a second, and are rounded against the retries.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tool_core::Instant;
/// use tool_runtime::RetryBudget;
///
/// let budget = RetryBudget::default();
/// budget.deposit(Instant::default());
/// assert!(budget.withdraw(Instant::default(), Duration::ZERO));
/// ```
#[derive(Debug, Default)]
pub struct RetryBudget(Mutex<Window>);

/// Number of seconds in the window: ten whole ones and the current one.
const SLOTS: usize = 11;

/// Distance of the oldest second in the window from the current one.
const REACH: u64 = SLOTS as u64 - 1;

/// Number of retries that ten seconds without calls allow.
const FLOOR: u64 = 10;

/// Number of calls that earn one retry.
const CALLS_PER_RETRY: u64 = 10;

/// Sliding window of past calls, and of past and future retries.
#[derive(Debug, Default)]
struct Window {
    /// Current second.
    second: u64,
    /// Number of calls in each of the last seconds, the current one first.
    calls: [u64; SLOTS],
    /// Number of retries per second of the window, and of the future.
    retries: BTreeMap<u64, u64>,
}

impl RetryBudget {
    /// Records a call, whatever its outcome.
    pub fn deposit(&self, now: Instant) {
        self.at(now, |window| window.calls[0] += 1);
    }

    /// Spends a retry that is made after this pause. Returns `false` if none is left.
    pub fn withdraw(&self, now: Instant, pause: Duration) -> bool {
        self.at(now, |window| {
            let second = second(now + pause).max(window.second);
            // Counts only calls that are certainly within ten seconds, and all retries that may be.
            let calls: u64 = window.calls[..SLOTS - 1].iter().sum();
            let is_allowed = window.max_spent_around(second) < FLOOR.max(calls / CALLS_PER_RETRY);
            if is_allowed {
                *window.retries.entry(second).or_default() += 1;
            }
            is_allowed
        })
    }

    fn at<T>(&self, now: Instant, act: impl FnOnce(&mut Window) -> T) -> T {
        let mut window = self.0.lock();
        window.advance(second(now));
        act(&mut window)
    }
}

impl Window {
    /// Moves the window to a second. An earlier second counts as the current one.
    fn advance(&mut self, second: u64) {
        let n_gone = second.saturating_sub(self.second).min(SLOTS as u64) as usize;
        self.second = self.second.max(second);
        self.calls.rotate_right(n_gone % SLOTS);
        self.calls[..n_gone].fill(0);
        if n_gone > 0 {
            let oldest = self.second.saturating_sub(REACH);
            self.retries = self.retries.split_off(&oldest);
        }
    }

    /// Returns the largest number of retries in any window that contains this second.
    fn max_spent_around(&self, second: u64) -> u64 {
        let first = second.saturating_sub(REACH);
        let spans = (first..=second).map(|first| self.retries.range(first..=first.saturating_add(REACH)));
        spans.map(|span| span.map(|(_, n)| n).sum()).max().unwrap_or(0)
    }
}

fn second(at: Instant) -> u64 {
    at.since(Instant::since_start(Duration::ZERO)).as_secs()
}
