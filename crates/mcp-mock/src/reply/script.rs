use std::sync::atomic::{AtomicUsize, Ordering};

use crate::MockReply;

/// The replies to one kind of request, in the order in which the requests come.
#[derive(Debug, Default)]
pub(crate) struct Script {
    replies: Vec<MockReply>,
    taken: AtomicUsize,
}

impl Script {
    pub(crate) fn new(replies: Vec<MockReply>) -> Self {
        Self {
            replies,
            taken: AtomicUsize::new(0),
        }
    }

    /// Counts a request: its number, from one.
    pub(crate) fn take(&self) -> usize {
        self.taken.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The reply to the request of this number: the last one for all that follow it.
    pub(crate) fn reply(&self, number: usize) -> MockReply {
        let index = number.saturating_sub(1).min(self.replies.len().saturating_sub(1));
        self.replies.get(index).cloned().unwrap_or_default()
    }
}
