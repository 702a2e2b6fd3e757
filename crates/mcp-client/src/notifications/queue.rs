use std::{
    collections::VecDeque,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use mcp_wire::Notification;
use parking_lot::{Mutex, MutexGuard};
use raw_json::RawJson;
use tokio::sync::Notify;

/// Notification of a server: a log message, an updated resource, a changed list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionEvent {
    /// Method of the notification, such as `notifications/message`.
    pub method: String,
    /// Params as the server wrote them.
    pub params: Option<RawJson>,
}

impl From<Notification> for ConnectionEvent {
    fn from(note: Notification) -> Self {
        Self {
            method: note.method,
            params: note.params,
        }
    }
}

/// Receiver of the notifications that belong to no request in progress, in order of arrival.
///
/// The queue holds at most 1024 events or 4 MiB. Events beyond that are dropped and counted, so that a server that
/// sends faster than anyone reads costs no memory. Dropping the receiver ends the subscription.
#[derive(Debug)]
pub struct EventReceiver(Arc<Queue>);

const MAX_EVENTS: usize = 1024;
const MAX_BYTES: usize = 4 * 1024 * 1024;

impl EventReceiver {
    /// Receives the next event. Returns `None` if the server is gone and the queue is empty.
    ///
    /// # Cancellation
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<ConnectionEvent> {
        loop {
            let ready = self.0.ready.notified();
            {
                let mut waiting = self.0.waiting();
                if let Some(event) = waiting.events.pop_front() {
                    waiting.bytes -= size(&event);
                    return Some(event);
                }
                if waiting.closed {
                    return None;
                }
            }
            ready.await;
        }
    }

    /// Number of events dropped because the queue was full.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.0.waiting().lost
    }
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    ready: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<ConnectionEvent>,
    bytes: usize,
    lost: u64,
    closed: bool,
}

impl Queue {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock()
    }

    fn push(&self, event: ConnectionEvent) {
        let mut waiting = self.waiting();
        let bytes = waiting.bytes + size(&event);
        if waiting.events.len() >= MAX_EVENTS || bytes > MAX_BYTES {
            waiting.lost += 1;
            return;
        }
        waiting.bytes = bytes;
        waiting.events.push_back(event);
        drop(waiting);
        self.ready.notify_one();
    }
}

fn size(event: &ConnectionEvent) -> usize {
    event.method.len() + event.params.as_ref().map_or(0, RawJson::len)
}

/// Sending half of all event queues. Without subscribers, an event costs one atomic load.
#[derive(Debug, Clone, Default)]
pub(crate) struct EventHub(Arc<Hub>);

#[derive(Debug, Default)]
struct Hub {
    subscribed: AtomicBool,
    queues: Mutex<Vec<Weak<Queue>>>,
}

impl EventHub {
    pub(crate) fn subscribe(&self) -> EventReceiver {
        let queue = Arc::new(Queue::default());
        self.0.queues().push(Arc::downgrade(&queue));
        self.0.subscribed.store(true, Ordering::Release);
        EventReceiver(queue)
    }

    /// Sends an event to all subscribers. Returns `false` if there are none.
    pub(crate) fn send(&self, note: Notification) -> bool {
        if !self.0.subscribed.load(Ordering::Acquire) {
            return false;
        }
        // The event may wait for long, and its message may be much larger than its counted size.
        let event = ConnectionEvent {
            params: note.params.map(|params| params.detached()),
            method: note.method,
        };
        let mut queues = self.0.queues();
        queues.retain(|queue| match queue.upgrade() {
            Some(queue) => {
                queue.push(event.clone());
                true
            }
            None => false,
        });
        if queues.is_empty() {
            self.0.subscribed.store(false, Ordering::Release);
        }
        !queues.is_empty()
    }
}

impl Hub {
    fn queues(&self) -> MutexGuard<'_, Vec<Weak<Queue>>> {
        self.queues.lock()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        for queue in self.queues().iter().filter_map(Weak::upgrade) {
            queue.waiting().closed = true;
            queue.ready.notify_one();
        }
    }
}
