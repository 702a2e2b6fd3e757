use std::{collections::BTreeMap, time::Duration};

use parking_lot::Mutex;
use tool_core::Instant;

/// How many calls one upstream may be tried again for: a tenth of its calls, or one a second if that is more.
///
/// Attempts on their own say how often one call is tried; this says what all of them may cost together. While nothing
/// answers, every call fails, and retries would be the larger part of what a recovering upstream has to bear. The
/// numbers are those of tower's `TpsBudget`, but the floor and the share are not added up: ten retries for a hundred
/// calls are the tenth already.
///
/// # Time
/// Calls of the last ten seconds give retries, and a retry is spent for the ten seconds before and after it is made, which may be
/// later than it is decided: those that wait for the same moment, as a server told them to, count together. Both in steps
/// of a second, rounded against the retries.
#[derive(Debug, Default)]
pub struct RetryBudget(Mutex<Window>);

/// Seconds that are remembered: ten whole ones and the present one.
const SLOTS: usize = 11;

/// How far the last remembered second is from the present one.
const REACH: u64 = SLOTS as u64 - 1;

/// What may be spent in ten seconds without any calls.
const FLOOR: u64 = 10;

/// How many calls give one retry.
const CALLS_PER_RETRY: u64 = 10;

/// What happened and will.
#[derive(Debug, Default)]
struct Window {
    /// The present second.
    second: u64,
    /// How many calls there were in each of the last seconds; the present one first.
    calls: [u64; SLOTS],
    /// How many retries were made in seconds that are remembered, and how many will be.
    retries: BTreeMap<u64, u64>,
}

impl RetryBudget {
    /// Takes note of a call, whatever becomes of it.
    pub fn deposit(&self, now: Instant) {
        self.at(now, |window| window.calls[0] += 1);
    }

    /// Spends a retry that is made after this pause; false if there is none left.
    pub fn withdraw(&self, now: Instant, pause: Duration) -> bool {
        self.at(now, |window| {
            let second = second(now + pause).max(window.second);
            // Calls only of what is surely within ten seconds, retries of all that may be.
            let calls: u64 = window.calls[..SLOTS - 1].iter().sum();
            let may = window.spent_around(second) < FLOOR.max(calls / CALLS_PER_RETRY);
            if may {
                *window.retries.entry(second).or_default() += 1;
            }
            may
        })
    }

    fn at<T>(&self, now: Instant, act: impl FnOnce(&mut Window) -> T) -> T {
        let mut window = self.0.lock();
        window.advance(second(now));
        act(&mut window)
    }
}

impl Window {
    /// Moves on to a second; one that is over already counts as the present one.
    fn advance(&mut self, second: u64) {
        let gone = second.saturating_sub(self.second).min(SLOTS as u64) as usize;
        self.second = self.second.max(second);
        self.calls.rotate_right(gone % SLOTS);
        self.calls[..gone].fill(0);
        if gone > 0 {
            let oldest = self.second.saturating_sub(REACH);
            self.retries = self.retries.split_off(&oldest);
        }
    }

    /// The most retries that any span of the remembered length has that contains this second.
    fn spent_around(&self, second: u64) -> u64 {
        let first = second.saturating_sub(REACH);
        let spans = (first..=second).map(|first| self.retries.range(first..=first.saturating_add(REACH)));
        spans.map(|span| span.map(|(_, n)| n).sum()).max().unwrap_or(0)
    }
}

fn second(at: Instant) -> u64 {
    at.since(Instant::since_start(Duration::ZERO)).as_secs()
}
