use std::{
    collections::HashMap,
    sync::Arc,
    task::{Context, Poll},
};

use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::{Notifier, Peer, wants::Wants};

/// The subscriptions of the modern era that are open, so that they can be ended together.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    last: u64,
    /// The ends into which notices are put; a subscription whose end is gone is over.
    by_number: HashMap<u64, mpsc::Sender<Vec<u8>>>,
    is_ended: bool,
}

/// What one subscription brings, from its acknowledgement to its end.
#[derive(Debug)]
pub(super) struct Subscription {
    subscriptions: Arc<Subscriptions>,
    number: u64,
    notices: mpsc::Receiver<Vec<u8>>,
    /// Taken when the end was told.
    wants: Option<Arc<Wants>>,
}

/// How many notices may wait for a client that is slow to read, before of each list, resource and task the latest alone
/// waits.
const NOTICES: usize = 64;

impl Subscriptions {
    /// Opens a subscription; nothing when they are ended.
    pub(super) fn open(
        self: &Arc<Self>,
        wants: Wants,
        peer: Peer,
        notices: &Notifier,
    ) -> Option<Subscription> {
        let (sender, receiver) = mpsc::channel(NOTICES);
        let wants = Arc::new(wants);
        let number = {
            let mut open = self.0.lock();
            if open.is_ended {
                return None;
            }
            open.last += 1;
            let number = open.last;
            open.by_number.insert(number, sender.clone());
            number
        };
        // In front of whatever comes from now on.
        let _ = sender.try_send(wants.acknowledgement());
        notices.subscribe(&sender, &wants, peer, false);
        Some(Subscription {
            subscriptions: Arc::clone(self),
            number,
            notices: receiver,
            wants: Some(wants),
        })
    }

    /// Ends all subscriptions, and opens no more.
    pub(super) fn end(&self) {
        let mut open = self.0.lock();
        open.is_ended = true;
        open.by_number.clear();
    }
}

impl Subscription {
    /// The next message; nothing after the end was told.
    pub(super) fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        let Some(wants) = &self.wants else {
            return Poll::Ready(None);
        };
        match self.notices.poll_recv(cx) {
            Poll::Ready(None) => Poll::Ready(self.wants.take().and_then(|wants| wants.end())),
            Poll::Ready(message) => Poll::Ready(message),
            // What was missed is later than all that is in the queue, which may not be empty: who has read much at a
            // time waits for a turn.
            Poll::Pending if self.notices.is_empty() => wants.poll_missed(cx).map(Some),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.subscriptions.0.lock().by_number.remove(&self.number);
    }
}
