use std::sync::atomic::{AtomicUsize, Ordering};

use crate::MockReply;

/// Replies to one kind of request, in the order of the requests.
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

    /// Counts a request and returns its number, from 1.
    pub(crate) fn take(&self) -> usize {
        self.taken.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the reply to the request of this number. The last reply is repeated.
    pub(crate) fn reply(&self, number: usize) -> MockReply {
        let index = number.saturating_sub(1).min(self.replies.len().saturating_sub(1));
        self.replies.get(index).cloned().unwrap_or_default()
    }
}
