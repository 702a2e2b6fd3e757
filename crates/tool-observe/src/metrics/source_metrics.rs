use std::sync::atomic::{AtomicU64, Ordering};

use tool_core::{SourceChange, SourceState};

use super::histogram::{Histogram, SECONDS, microseconds};

/// Metrics of a source of tools.
#[derive(Debug, Default)]
pub(super) struct SourceMetrics {
    changes: [AtomicU64; SourceState::WORDS.len()],
    /// Duration of starts, including failed ones.
    pub(super) start_seconds: Histogram,
}

impl SourceMetrics {
    pub(super) fn count(&self, change: &SourceChange) {
        self.changes[change.to.place()].fetch_add(1, Ordering::Relaxed);
        if change.from == SourceState::Starting {
            self.start_seconds.record(&SECONDS, microseconds(change.after));
        }
    }

    /// Returns each state that the source entered, with the number of times.
    pub(super) fn changes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.changes.iter().map(|count| count.load(Ordering::Relaxed));
        let all = SourceState::WORDS.iter().copied().zip(counts);
        all.filter(|(_, count)| *count > 0)
    }
}
