use std::{
    collections::VecDeque,
    fmt, mem,
    sync::Arc,
    task::{Context, Poll, Waker},
    vec,
};

use bytes::Bytes;
use mcp_wire::{method, sse_event};
use parking_lot::{Mutex, MutexGuard};
use raw_json::RawJson;
use tokio::time::Instant;

use super::filter::SubscriptionFilter;
use crate::limits::{ByteBudget, StreamPermit};

/// Queue of the notifications to one session, which keeps them while the client is away.
///
/// Each has an id that counts up, and of each list, resource and task only the latest is kept. A client reads them on one
/// stream at a time: a new stream replaces the one before, whose connection may have been lost unnoticed. Notifications
/// that were sent are kept as well, for a client that resumes after the last id that it has received.
pub(crate) struct SessionQueue {
    state: Mutex<State>,
    filter: Arc<SubscriptionFilter>,
    budget: Arc<ByteBudget>,
}

#[derive(Default)]
struct State {
    /// Entries in the order of their numbers.
    entries: VecDeque<Entry>,
    /// Total length of the entries, in bytes.
    length: usize,
    /// Number of the latest notification.
    last: u64,
    /// Highest number that was sent on a stream.
    sent: u64,
    /// Highest number of a dropped notification. A client that has not received it is sent a notification for each
    /// resource that it has subscribed to.
    dropped: u64,
    /// Number of the latest stream.
    stream: u64,
    /// Permit of the open stream; `None` if there is none.
    permit: Option<StreamPermit>,
    /// Time at which the latest stream was closed.
    closed_at: Option<Instant>,
    reader: Option<Waker>,
    has_ended: bool,
}

/// Notification that waits in the queue.
struct Entry {
    number: u64,
    /// Subject, if a later notification of the same subject replaces this one.
    subject: Option<(SubjectKind, String)>,
    message: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SubjectKind {
    /// List, by the name of its notification. There are few, and they are never dropped.
    List,
    Resource,
    Task,
}

/// Stream on which a client reads the queue; closed when dropped.
pub(crate) struct SessionQueueReader {
    queue: Arc<SessionQueue>,
    number: u64,
    /// Number of the latest notification that was read.
    position: u64,
    resync: Option<Resync>,
}

/// Notifications for all resources, which replace those that were dropped.
struct Resync {
    uris: vec::IntoIter<String>,
    /// Number of the latest dropped notification.
    up_to: u64,
}

/// Maximum number of notifications that one session keeps, without those of lists.
const MAX_ENTRIES: usize = 128;
/// Maximum total length of these notifications, in bytes.
const MAX_LENGTH: usize = 64 * 1024;

impl SessionQueue {
    /// Number of the stream in the ids of its events. Streams of calls count from one.
    pub(crate) const STREAM: u64 = 0;

    pub(crate) fn new(filter: Arc<SubscriptionFilter>, budget: Arc<ByteBudget>) -> Self {
        Self {
            state: Mutex::default(),
            filter,
            budget,
        }
    }

    pub(super) fn filter(&self) -> &Arc<SubscriptionFilter> {
        &self.filter
    }

    /// Adds a notification.
    pub(super) fn push(&self, method: &str, params: Option<&RawJson>) {
        let message = self.filter.frame(method, params);
        let subject = subject_of(method, params);
        let mut state = self.lock();
        if state.has_ended {
            return;
        }
        if subject.is_some()
            && let Some(index) = state.entries.iter().position(|entry| entry.subject == subject)
        {
            state.remove(index, &self.budget);
        }
        state.last += 1;
        let entry = Entry {
            number: state.last,
            subject,
            message,
        };
        state.push(entry, &self.budget);
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Opens a stream, which replaces the open one and takes its permit; `acquire` acquires a permit if none is open. The
    /// stream begins after the notification with the number `after`, by default after the last one that was sent.
    pub(crate) fn open<E>(
        self: &Arc<Self>,
        after: Option<u64>,
        acquire: impl FnOnce() -> Result<StreamPermit, E>,
    ) -> Result<SessionQueueReader, E> {
        let mut state = self.lock();
        let permit = match state.permit.take() {
            Some(permit) => permit,
            None => acquire()?,
        };
        state.permit = Some(permit);
        state.stream += 1;
        let stream = SessionQueueReader {
            queue: Arc::clone(self),
            number: state.stream,
            position: after.unwrap_or(state.sent),
            resync: None,
        };
        let replaced = state.reader.take();
        drop(state);
        if let Some(replaced) = replaced {
            replaced.wake();
        }
        Ok(stream)
    }

    /// Returns `true` if there ever was a notification with this number.
    pub(crate) fn has_had(&self, number: u64) -> bool {
        number <= self.lock().last
    }

    /// Returns `true` if a stream is open.
    pub(crate) fn is_read(&self) -> bool {
        self.lock().permit.is_some()
    }

    /// Returns the time at which the latest stream was closed.
    pub(crate) fn closed_at(&self) -> Option<Instant> {
        self.lock().closed_at
    }

    /// Ends the queue and its stream; later notifications are dropped.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.has_ended = true;
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    /// Adds an entry, and drops the oldest ones that leave it no room.
    fn push(&mut self, entry: Entry, budget: &ByteBudget) {
        let length = entry.length();
        let has_room =
            |state: &Self| state.entries.len() < MAX_ENTRIES && state.length + length <= MAX_LENGTH;
        while !has_room(self) && self.drop_oldest(budget) {}
        if entry.is_of_list() || has_room(self) && budget.take(length) {
            self.length += length;
            self.entries.push_back(entry);
        } else {
            self.dropped = entry.number;
        }
    }

    fn next_after(&self, number: u64) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.number > number)
    }

    /// Drops the oldest entry that is not of a list. Returns `false` if there is none.
    fn drop_oldest(&mut self, budget: &ByteBudget) -> bool {
        let index = self.entries.iter().position(|entry| !entry.is_of_list());
        if let Some(index) = index {
            self.dropped = self.dropped.max(self.entries[index].number);
            self.remove(index, budget);
        }
        index.is_some()
    }

    fn remove(&mut self, index: usize, budget: &ByteBudget) {
        if let Some(removed) = self.entries.remove(index) {
            self.length -= removed.length();
            budget.give_back(removed.length());
        }
    }
}

impl Entry {
    fn is_of_list(&self) -> bool {
        matches!(self.subject, Some((SubjectKind::List, _)))
    }

    /// Returns the number of bytes that count towards the limits.
    fn length(&self) -> usize {
        if self.is_of_list() { 0 } else { self.message.len() }
    }
}

/// Returns the subject of a notification, if a later one of the same subject replaces it.
fn subject_of(method: &str, params: Option<&RawJson>) -> Option<(SubjectKind, String)> {
    let (kind, key) = match method {
        method::TOOLS_LIST_CHANGED | method::PROMPTS_LIST_CHANGED | method::RESOURCES_LIST_CHANGED => {
            return Some((SubjectKind::List, method.to_owned()));
        }
        method::RESOURCES_UPDATED => (SubjectKind::Resource, "uri"),
        method::TASKS_STATUS => (SubjectKind::Task, "taskId"),
        _ => return None,
    };
    Some((kind, params?.get(key)?.string()?))
}

impl SessionQueueReader {
    /// Returns the next event, or `None` once the queue has ended or another stream has replaced this one.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let queue = Arc::clone(&self.queue);
        let mut state = queue.lock();
        if state.has_ended || state.stream != self.number {
            return Poll::Ready(None);
        }
        if let Some(event) = self.next_resync(&mut state) {
            return Poll::Ready(Some(event));
        }
        let Some(next) = state.next_after(self.position) else {
            state.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        let event = sse_event(&next.message, None, Some(&event_id(next.number)));
        self.position = next.number;
        state.sent = state.sent.max(self.position);
        Poll::Ready(Some(event.into()))
    }

    /// Returns the next notification of a resource that may have changed, in place of those that were dropped.
    fn next_resync(&mut self, state: &mut State) -> Option<Bytes> {
        let is_due = |state: &State| {
            state
                .next_after(self.position)
                .is_none_or(|next| next.number > state.dropped)
        };
        if self.resync.is_none() && self.position < state.dropped && is_due(state) {
            self.resync = Some(Resync {
                uris: self.queue.filter.resources.to_vec().into_iter(),
                up_to: state.dropped,
            });
        }
        let resync = self.resync.as_mut()?;
        let uri = resync.uris.next();
        // Only the last one has an id: a client whose stream is lost before it receives all of them again.
        let mut last = None;
        if resync.uris.len() == 0 {
            self.position = resync.up_to;
            state.sent = state.sent.max(self.position);
            self.resync = None;
            last = Some(event_id(self.position));
        }
        let message = self.queue.filter.resource_updated(&uri?);
        Some(sse_event(&message, None, last.as_deref()).into())
    }
}

/// Returns the id of the event of a notification.
fn event_id(number: u64) -> String {
    format!("{}-{number}", SessionQueue::STREAM)
}

impl Drop for SessionQueueReader {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        if state.stream == self.number {
            state.closed_at = Some(Instant::now());
            // Dropped after the lock, since the permits have one of their own.
            let permit = mem::take(&mut state.permit);
            drop(state);
            drop(permit);
        }
    }
}

impl Drop for SessionQueue {
    fn drop(&mut self) {
        let length = mem::take(&mut self.lock().length);
        self.budget.give_back(length);
    }
}

impl fmt::Debug for SessionQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionQueue").finish_non_exhaustive()
    }
}
