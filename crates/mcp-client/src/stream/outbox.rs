//! Queue of outgoing frames, and the stream while nobody writes to it.

use std::{
    mem,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
};

use parking_lot::{Mutex, MutexGuard};
use tokio::{io::AsyncWrite, sync::Notify, task::yield_now};

use super::{call::Call, shared::Shared};

/// Writing half of the stream.
pub(super) type Sink = Box<dyn AsyncWrite + Unpin + Send>;

/// Queued message.
pub(super) enum Outgoing {
    /// Request, skipped if its caller has left.
    Call(Arc<Call>),
    /// Any other frame.
    Frame(Vec<u8>),
}

impl Outgoing {
    /// Creates a frame that ends as a line.
    pub(super) fn line(mut frame: Vec<u8>) -> Self {
        mcp_wire::end_line(&mut frame);
        Self::Frame(frame)
    }
}

/// Reason why a frame was not queued.
pub(super) enum PushError {
    Full(Outgoing),
    Closed,
}

/// Maximum number of queued frames. A frame belongs to a waiting caller, so this bounds not memory, but how far callers
/// run ahead.
const CAPACITY: usize = 256;

/// Outgoing frames of a connection.
///
/// A single caller writes by itself, because waking the writer task would cost more than the write. All other frames
/// are queued for that task, which combines them into one write. Only that task may wait.
pub(super) struct Outbox {
    state: Mutex<State>,
    /// Signals that the queue is not empty.
    ready: Notify,
    /// Signals that the queue was drained.
    room: Notify,
}

struct State {
    queue: Vec<Outgoing>,
    /// Stream, unless someone is writing to it.
    sink: Option<Sink>,
    /// Remainder of a partially written frame. Empty if only the flush is missing.
    unwritten: Option<Vec<u8>>,
    closed: bool,
}

impl Outbox {
    pub(super) fn new(sink: Sink) -> Self {
        let state = Mutex::new(State {
            queue: Vec::new(),
            sink: Some(sink),
            unwritten: None,
            closed: false,
        });
        Self {
            state,
            ready: Notify::new(),
            room: Notify::new(),
        }
    }

    /// Queues a frame if there is room.
    pub(super) fn push(&self, outgoing: Outgoing) -> Result<(), PushError> {
        let mut state = self.state();
        if state.closed {
            return Err(PushError::Closed);
        }
        if state.queue.len() >= CAPACITY {
            return Err(PushError::Full(outgoing));
        }
        state.queue.push(outgoing);
        drop(state);
        self.ready.notify_one();
        Ok(())
    }

    /// Queues a frame as soon as there is room. Returns `false` if the connection is closed.
    pub(super) async fn push_when_ready(&self, mut outgoing: Outgoing) -> bool {
        loop {
            let mut room = pin!(self.room.notified());
            // From here on, no notification is missed.
            room.as_mut().enable();
            match self.push(outgoing) {
                Ok(()) => return true,
                Err(PushError::Closed) => return false,
                Err(PushError::Full(back)) => outgoing = back,
            }
            room.await;
        }
    }

    /// Writes a request immediately, as far as the stream accepts it. Returns `false` if the stream is in use.
    pub(super) fn try_write(&self, call: &Call, shared: &Shared) -> bool {
        let Some(mut guard) = self.lock_sink() else {
            return false;
        };
        if let Some(frame) = call.begin_send() {
            shared.set_last_written(call.id);
            guard.write(&frame);
        }
        true
    }

    /// Takes the stream if nobody writes and nothing is queued, which preserves the order of frames.
    fn lock_sink(&self) -> Option<SinkGuard<'_>> {
        let mut state = self.state();
        if !state.queue.is_empty() || state.unwritten.is_some() {
            return None;
        }
        let sink = state.sink.take()?;
        Some(SinkGuard {
            outbox: self,
            sink: Some(sink),
            unwritten: None,
        })
    }

    /// Waits for frames and moves them into `batch`. Returns the remainder of a frame that must be written first. Keeps
    /// the stream in `sink` until the queue is empty.
    pub(super) async fn next_batch(
        &self,
        sink: &mut Option<Sink>,
        batch: &mut Vec<Outgoing>,
    ) -> Option<Vec<u8>> {
        loop {
            {
                let mut state = self.state();
                if state.queue.is_empty() && state.unwritten.is_none() {
                    if let Some(sink) = sink.take() {
                        state.sink = Some(sink);
                        // An idle connection keeps no memory that it does not need.
                        *batch = Vec::new();
                        state.queue = Vec::new();
                    }
                } else {
                    *sink = sink.take().or_else(|| state.sink.take());
                    if sink.is_some() {
                        mem::swap(&mut state.queue, batch);
                        let unwritten = state.unwritten.take();
                        drop(state);
                        self.room.notify_waiters();
                        return unwritten;
                    }
                }
            }
            self.ready.notified().await;
            // A task woken by a caller would run right after it. Yielding lets other ready callers queue their frames
            // first, so that one system call writes them all.
            yield_now().await;
        }
    }

    /// Refuses and drops all frames from now on. Returns the stream if nobody is writing to it.
    pub(super) fn close(&self) -> Option<Sink> {
        let mut state = self.state();
        state.closed = true;
        state.queue = Vec::new();
        let sink = state.sink.take();
        drop(state);
        self.room.notify_waiters();
        sink
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Exclusive access of a caller to the stream, which is returned on drop.
struct SinkGuard<'a> {
    outbox: &'a Outbox,
    sink: Option<Sink>,
    unwritten: Option<Vec<u8>>,
}

impl SinkGuard<'_> {
    /// Writes without waiting. The writer task handles the remainder and errors.
    fn write(&mut self, frame: &[u8]) {
        let Some(sink) = &mut self.sink else { return };
        let mut sink = Pin::new(sink);
        let mut cx = Context::from_waker(Waker::noop());
        let mut remaining = frame;
        while !remaining.is_empty() {
            match sink.as_mut().poll_write(&mut cx, remaining) {
                Poll::Ready(Ok(length @ 1..)) => remaining = &remaining[length..],
                _ => break,
            }
        }
        if !remaining.is_empty() || !matches!(sink.poll_flush(&mut cx), Poll::Ready(Ok(()))) {
            self.unwritten = Some(remaining.to_vec());
        }
    }
}

impl Drop for SinkGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.outbox.state();
        if state.closed {
            return;
        }
        state.sink = self.sink.take();
        state.unwritten = self.unwritten.take();
        let waits = state.unwritten.is_some() || !state.queue.is_empty();
        drop(state);
        if waits {
            self.outbox.ready.notify_one();
        }
    }
}
