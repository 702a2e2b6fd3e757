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
                let mut state = self.0.state();
                if let Some(event) = state.events.pop_front() {
                    state.bytes -= size(&event);
                    return Some(event);
                }
                if state.closed {
                    return None;
                }
            }
            ready.await;
        }
    }

    /// Number of events dropped because the queue was full.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.0.state().lost
    }
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<QueueState>,
    ready: Notify,
}

#[derive(Debug, Default)]
struct QueueState {
    events: VecDeque<ConnectionEvent>,
    bytes: usize,
    lost: u64,
    closed: bool,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock()
    }

    fn push(&self, event: ConnectionEvent) {
        let mut state = self.state();
        let bytes = state.bytes + size(&event);
        if state.events.len() >= MAX_EVENTS || bytes > MAX_BYTES {
            state.lost += 1;
            return;
        }
        state.bytes = bytes;
        state.events.push_back(event);
        drop(state);
        self.ready.notify_one();
    }
}

fn size(event: &ConnectionEvent) -> usize {
    event.method.len() + event.params.as_ref().map_or(0, RawJson::len)
}

/// Sending half of all event queues. Without subscribers, an event costs one atomic load.
#[derive(Debug, Clone, Default)]
pub(crate) struct EventHub(Arc<HubState>);

#[derive(Debug, Default)]
struct HubState {
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

impl HubState {
    fn queues(&self) -> MutexGuard<'_, Vec<Weak<Queue>>> {
        self.queues.lock()
    }
}

impl Drop for HubState {
    fn drop(&mut self) {
        for queue in self.queues().iter().filter_map(Weak::upgrade) {
            queue.state().closed = true;
            queue.ready.notify_one();
        }
    }
}
