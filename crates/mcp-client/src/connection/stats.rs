use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of messages that no request waited for, since the connection was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Lines or events that are not messages.
    pub garbage: u64,
    /// Responses to no request in progress: unknown, repeated, or cancelled before.
    pub unmatched: u64,
    /// Messages beyond the size limit.
    pub oversize: u64,
    /// Notifications without a receiver.
    pub notifications: u64,
    /// Requests of the server that were refused.
    pub refused: u64,
    /// Frames that were not sent because the server did not read.
    pub dropped: u64,
}

#[derive(Debug, Default)]
pub(crate) struct StatCounters {
    pub(crate) garbage: Counter,
    pub(crate) unmatched: Counter,
    pub(crate) oversize: Counter,
    pub(crate) notifications: Counter,
    pub(crate) refused: Counter,
    pub(crate) dropped: Counter,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl StatCounters {
    pub(crate) fn snapshot(&self) -> ConnectionStats {
        ConnectionStats {
            garbage: self.garbage.get(),
            unmatched: self.unmatched.get(),
            oversize: self.oversize.get(),
            notifications: self.notifications.get(),
            refused: self.refused.get(),
            dropped: self.dropped.get(),
        }
    }
}
