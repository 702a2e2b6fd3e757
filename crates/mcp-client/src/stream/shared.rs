use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use super::{call::Call, subscription::Subscription};
use crate::{
    ClientError,
    notifications::MessageRouter,
    process::{ProcessHandle, Stop},
};

/// State shared by callers and the two tasks of a connection. It keeps no process alive.
pub(super) struct Shared {
    pending: Mutex<Pending>,
    next_id: AtomicU64,
    /// Id of the request written last, or 0 if it was a notification. An error response without an id refers to it.
    last_written: AtomicU64,
    subscription: Mutex<Subscription>,
    closed: watch::Sender<bool>,
    process: Option<ProcessHandle>,
    /// Signals that a call has a deadline before the next check.
    pub(super) earlier_deadline: Notify,
    pub(super) router: Arc<MessageRouter>,
    /// Reason for the end of the stream, if its carrier knows.
    pub(super) end_of_stream: Arc<OnceLock<ClientError>>,
}

type CallMap = HashMap<u64, Arc<Call>, BuildHasherDefault<IdHasher>>;

/// Hasher for our own sequential ids: one multiplication distributes them well (Fibonacci hashing).
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = (self.0 ^ id).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

#[derive(Default)]
struct Pending {
    calls: CallMap,
    /// Reason and time of the end of the connection.
    closed: Option<(ClientError, Instant)>,
    /// Time of the next check of deadlines.
    next_deadline: Option<Instant>,
}

impl Shared {
    pub(super) fn new(process: Option<ProcessHandle>, router: Arc<MessageRouter>) -> Self {
        Self {
            pending: Mutex::default(),
            next_id: AtomicU64::new(1),
            last_written: AtomicU64::new(0),
            subscription: Mutex::default(),
            closed: watch::Sender::new(false),
            process,
            earlier_deadline: Notify::new(),
            router,
            end_of_stream: Arc::default(),
        }
    }

    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Registers a call, unless the connection is closed. Returns `true` if it is the only one.
    pub(super) fn register(&self, call: &Arc<Call>) -> Result<bool, ClientError> {
        let (deadline, registered) = (call.exchange.deadline(), Arc::clone(call));
        let mut pending = self.pending();
        if let Some((error, _)) = &pending.closed {
            return Err(error.clone().with_sent(false));
        }
        pending.calls.insert(call.id, registered);
        if pending.next_deadline.is_none_or(|next| deadline < next) {
            pending.next_deadline = Some(deadline);
            self.earlier_deadline.notify_one();
        }
        Ok(pending.calls.len() == 1)
    }

    /// Fails overdue calls, and returns the next deadline. The calls stay registered until their callers leave, who
    /// then notify the server.
    pub(super) fn fail_overdue(&self, now: Instant) -> Option<Instant> {
        let mut overdue = Vec::new();
        let mut pending = self.pending();
        let mut next = None;
        for call in pending.calls.values().filter(|call| call.is_waiting()) {
            let deadline = call.exchange.deadline();
            if deadline <= now {
                overdue.push(Arc::clone(call));
            } else if next.is_none_or(|next| deadline < next) {
                next = Some(deadline);
            }
        }
        pending.next_deadline = next;
        drop(pending);
        for call in overdue {
            call.finish(Err(call.exchange.timed_out()));
        }
        next
    }

    pub(super) fn count(&self) -> usize {
        self.pending().calls.len()
    }

    pub(super) fn get(&self, id: u64) -> Option<Arc<Call>> {
        self.pending().calls.get(&id).cloned()
    }

    pub(super) fn remove(&self, id: u64) -> Option<Arc<Call>> {
        self.pending().calls.remove(&id)
    }

    /// Fails a call that still waits for its response.
    #[cfg(feature = "http")]
    pub(super) fn fail(&self, id: u64, error: ClientError) {
        let Some(call) = self.remove(id) else { return };
        if !error.was_sent() {
            call.exchange.mark_unsent();
        }
        call.finish(Err(error));
    }

    /// Removes the only call that an error response without an id can refer to, if there is exactly one.
    pub(super) fn remove_only(&self) -> Option<Arc<Call>> {
        let last = self.last_written.load(Ordering::SeqCst);
        let mut pending = self.pending();
        if pending.calls.values().filter(|call| call.was_sent()).count() != 1 {
            return None;
        }
        pending.calls.remove(&last)
    }

    pub(super) fn remove_all_sent(&self) -> Vec<Arc<Call>> {
        self.pending()
            .calls
            .extract_if(|_, call| call.was_sent())
            .map(|(_, call)| call)
            .collect()
    }

    /// The subscription at a modern server.
    pub(super) fn subscription(&self) -> MutexGuard<'_, Subscription> {
        self.subscription.lock()
    }

    pub(super) fn set_last_written(&self, id: u64) {
        self.last_written.store(id, Ordering::SeqCst);
    }

    /// Closes the connection: every call fails, the tasks end, the process is stopped. Only the first reason counts.
    pub(super) fn close(&self, error: ClientError, stop: Stop) {
        let mut pending = self.pending();
        let calls = std::mem::take(&mut pending.calls);
        let (error, _) = pending
            .closed
            .get_or_insert_with(|| (error, Instant::now()))
            .clone();
        drop(pending);
        for call in calls.into_values() {
            call.finish(Err(error.clone()));
        }
        if let Some(process) = &self.process {
            process.record_descendants();
        }
        self.closed.send_replace(true);
        self.router.stop();
        if let Some(process) = &self.process {
            process.stop(stop);
        }
    }

    pub(super) fn process(&self) -> Option<&ProcessHandle> {
        self.process.as_ref()
    }

    pub(super) fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }

    pub(super) async fn closed(&self) {
        // The sender lives as long as `self`.
        let _ = self.closed.subscribe().wait_for(|closed| *closed).await;
    }

    pub(super) fn closed_signal(&self) -> watch::Receiver<bool> {
        self.closed.subscribe()
    }

    /// Reason for the end of the connection.
    pub(super) fn close_error(&self) -> ClientError {
        self.close_info().0
    }

    /// Reason and time of the end of the connection.
    pub(super) fn close_info(&self) -> (ClientError, Instant) {
        let end = self.pending().closed.clone();
        end.unwrap_or_else(|| (ClientError::closed("the connection is closed"), Instant::now()))
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock()
    }
}

/// Closes the connection if one of its tasks panics: nobody may wait for a task that is gone.
pub(super) struct CloseOnPanic(pub(super) Arc<Shared>);

impl Drop for CloseOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0
                .close(ClientError::closed("a fault of this client"), Stop::Now);
        }
    }
}
