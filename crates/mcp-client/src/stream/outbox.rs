//! What waits to be written, and the stream for as long as nobody writes to it.

use std::{
    mem,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
};

use parking_lot::{Mutex, MutexGuard};
use tokio::{io::AsyncWrite, sync::Notify, task::yield_now};

use super::{call::Call, shared::Shared};

/// Where frames go.
pub(super) type Sink = Box<dyn AsyncWrite + Unpin + Send>;

/// What waits to be written.
pub(super) enum Outgoing {
    /// A request, unless its caller has left by then.
    Call(Arc<Call>),
    /// Anything else.
    Frame(Vec<u8>),
}

impl Outgoing {
    /// Ends a frame as a line.
    pub(super) fn line(mut frame: Vec<u8>) -> Self {
        mcp_wire::end_line(&mut frame);
        Self::Frame(frame)
    }
}

/// Why a frame was not queued.
pub(super) enum PushError {
    Full(Outgoing),
    Closed,
}

/// How many frames may wait. A frame belongs to a caller that waits, so this bounds no memory, only how far callers
/// run ahead.
const CAPACITY: usize = 256;

/// The frames of a connection on their way out.
///
/// A caller who is alone writes by itself: waking the writer's task would cost more than the write. Everything else
/// is queued for that task, which puts many frames into one write, and which alone may wait.
pub(super) struct Outbox {
    state: Mutex<State>,
    /// Something waits to be written.
    ready: Notify,
    /// What waited was taken.
    room: Notify,
}

struct State {
    queue: Vec<Outgoing>,
    /// The stream, unless someone is writing to it.
    sink: Option<Sink>,
    /// The end of a frame whose beginning was written; empty when only the flush is missing.
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

    /// Queues a frame, if there is room.
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

    /// Queues a frame as soon as there is room; false when the connection is closed.
    pub(super) async fn push_when_ready(&self, mut outgoing: Outgoing) -> bool {
        loop {
            let mut room = pin!(self.room.notified());
            // From here on nothing is missed.
            room.as_mut().enable();
            match self.push(outgoing) {
                Ok(()) => return true,
                Err(PushError::Closed) => return false,
                Err(PushError::Full(back)) => outgoing = back,
            }
            room.await;
        }
    }

    /// Writes a request at once as far as the stream takes it; false when it is not this caller's turn.
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

    /// The stream, if nobody writes and nothing waits: frames keep their order.
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

    /// Waits for something to write: it is in `batch` then, the end of a frame that comes before all of it is
    /// returned, and the stream is in `sink`, where it stays until nothing waits any longer.
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
                        // An idle connection holds no memory that it does not need.
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
            // Whoever is woken by a caller runs right behind it. Others that are ready go first, so that one call of
            // the kernel takes the frames of all.
            yield_now().await;
        }
    }

    /// Refuses and forgets everything from now on; returns the stream, if nobody is writing to it.
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

/// A caller's turn at the stream, which goes back to where it was.
struct SinkGuard<'a> {
    outbox: &'a Outbox,
    sink: Option<Sink>,
    unwritten: Option<Vec<u8>>,
}

impl SinkGuard<'_> {
    /// Writes without waiting. What is left, and what is wrong, is for the writer's task to see.
    fn write(&mut self, frame: &[u8]) {
        let Some(sink) = &mut self.sink else { return };
        let mut sink = Pin::new(sink);
        let mut cx = Context::from_waker(Waker::noop());
        let mut left = frame;
        while !left.is_empty() {
            match sink.as_mut().poll_write(&mut cx, left) {
                Poll::Ready(Ok(length @ 1..)) => left = &left[length..],
                _ => break,
            }
        }
        if !left.is_empty() || !matches!(sink.poll_flush(&mut cx), Poll::Ready(Ok(()))) {
            self.unwritten = Some(left.to_vec());
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
