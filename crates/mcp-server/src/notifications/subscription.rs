use std::{
    collections::HashMap,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use mcp_wire::sse_event;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::{filter::SubscriptionFilter, notifier::Notifier, queue::CoalescingQueue};
use crate::Peer;

/// Open subscriptions of the modern era over HTTP, which can be ended together.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(Mutex<OpenSubscriptions>);

#[derive(Debug, Default)]
struct OpenSubscriptions {
    last: u64,
    /// Senders of the channels; a subscription ends when its sender is removed.
    by_number: HashMap<u64, mpsc::Sender<Vec<u8>>>,
    is_ended: bool,
}

/// Stream of one subscription, from its acknowledgement to its final response.
#[derive(Debug)]
pub(crate) struct Subscription {
    subscriptions: Arc<Subscriptions>,
    number: u64,
    channel: mpsc::Receiver<Vec<u8>>,
    /// `None` once the final response was returned.
    queue: Option<Arc<CoalescingQueue>>,
}

/// Maximum number of notifications that wait in the channel of a client. Further ones wait in its [`CoalescingQueue`].
const MAX_WAITING: usize = 64;

impl Subscriptions {
    /// Opens a subscription. Returns `None` if all are ended.
    pub(crate) fn open(
        self: &Arc<Self>,
        filter: SubscriptionFilter,
        peer: Peer,
        notifier: &Notifier,
    ) -> Option<Subscription> {
        let (sender, channel) = mpsc::channel(MAX_WAITING);
        let acknowledgement = filter.acknowledgement();
        let queue = Arc::new(CoalescingQueue::new(Arc::new(filter)));
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
        // Before all notifications.
        let _ = sender.try_send(acknowledgement);
        notifier.add_stream(&sender, &queue, peer, false);
        Some(Subscription {
            subscriptions: Arc::clone(self),
            number,
            channel,
            queue: Some(queue),
        })
    }

    /// Ends all subscriptions, and opens no more.
    pub(crate) fn end(&self) {
        let mut open = self.0.lock();
        open.is_ended = true;
        open.by_number.clear();
    }
}

impl Subscription {
    /// Returns the next event, or `None` after the final response.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let event = |message: Vec<u8>| Bytes::from(sse_event(&message, None, None));
        self.poll_message(cx).map(|message| message.map(event))
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        let Some(queue) = &self.queue else {
            return Poll::Ready(None);
        };
        match self.channel.poll_recv(cx) {
            Poll::Ready(None) => Poll::Ready(
                self.queue
                    .take()
                    .and_then(|queue| queue.filter().final_response()),
            ),
            Poll::Ready(message) => Poll::Ready(message),
            // The queue is later than all messages in the channel. The channel may not be empty although it is pending:
            // tokio's cooperative budget makes a reader of many messages yield.
            Poll::Pending if self.channel.is_empty() => queue.poll_next(cx).map(Some),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.subscriptions.0.lock().by_number.remove(&self.number);
    }
}
