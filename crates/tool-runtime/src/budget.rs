use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tool_core::Instant;

/// How many calls one upstream may be tried again for: a tenth of its calls, or one a second if that is more.
///
/// Attempts on their own say how often one call is tried; this says what all of them may cost together. While nothing
/// answers, every call fails, and retries would be the larger part of what a recovering upstream has to bear. The
/// numbers are those of tower's `TpsBudget`, but the floor and the share are not added up: ten retries for a hundred
/// calls are the tenth already.
///
/// # Time
/// Calls of the last ten seconds give retries, and a retry is spent for ten seconds; both in steps of a second, rounded
/// against the retries.
#[derive(Debug, Default)]
pub struct RetryBudget(Mutex<Window>);

/// Seconds that are remembered: ten whole ones and the present one.
const SLOTS: usize = 11;

/// What may be spent in ten seconds without any calls.
const FLOOR: u64 = 10;

/// How many calls give one retry.
const CALLS_PER_RETRY: u64 = 10;

/// What happened in each of the last seconds; the present one first.
#[derive(Debug, Default)]
struct Window {
    second: u64,
    calls: [u64; SLOTS],
    retries: [u64; SLOTS],
}

impl RetryBudget {
    /// Takes note of a call, whatever becomes of it.
    pub fn deposit(&self, now: Instant) {
        self.at(now, |window| window.calls[0] += 1);
    }

    /// Spends a retry; false if there is none left.
    pub fn withdraw(&self, now: Instant) -> bool {
        self.at(now, |window| {
            // Calls only of what is surely within ten seconds, retries of all that may be.
            let calls: u64 = window.calls[..SLOTS - 1].iter().sum();
            let spent: u64 = window.retries.iter().sum();
            let may = spent < FLOOR.max(calls / CALLS_PER_RETRY);
            window.retries[0] += u64::from(may);
            may
        })
    }

    fn at<T>(&self, now: Instant, act: impl FnOnce(&mut Window) -> T) -> T {
        let second = now.since(Instant::since_start(Duration::ZERO)).as_secs();
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        window.advance(second);
        act(&mut window)
    }
}

impl Window {
    /// Moves on to a second; one that is over already counts as the present one.
    fn advance(&mut self, second: u64) {
        let gone = second.saturating_sub(self.second).min(SLOTS as u64) as usize;
        self.second = self.second.max(second);
        for slots in [&mut self.calls, &mut self.retries] {
            slots.rotate_right(gone % SLOTS);
            slots[..gone].fill(0);
        }
    }
}
