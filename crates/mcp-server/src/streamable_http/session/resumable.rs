use std::{collections::VecDeque, mem, sync::Arc, time::Duration};

use bytes::Bytes;
use mcp_wire::sse_event;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;

use crate::limits::ByteBudget;

/// Streams of a session on which calls are answered, kept so that a client can resume one that it has lost.
#[derive(Debug)]
pub(crate) struct ResumableStreams {
    kept: Mutex<KeptStreams>,
    budget: Arc<ByteBudget>,
}

#[derive(Debug, Default)]
struct KeptStreams {
    last: u64,
    streams: VecDeque<Arc<ResumableStream>>,
}

/// One stream, with its events and their ids.
#[derive(Debug)]
pub(crate) struct ResumableStream {
    number: u64,
    state: Mutex<State>,
    budget: Arc<ByteBudget>,
}

#[derive(Debug, Default)]
struct State {
    /// Latest events: the oldest are dropped beyond the limit, and all once they are no longer needed.
    events: VecDeque<Bytes>,
    /// Number of all events so far.
    n_events: usize,
    /// Total length of the kept events, in bytes.
    length: usize,
    has_ended: bool,
    /// `true` if all events up to the end were handed to the connection of the client.
    is_sent: bool,
    /// Channel to the client that has resumed the stream.
    follower: Option<mpsc::Sender<Bytes>>,
}

/// Maximum number of streams that a session keeps. The oldest one that was sent is dropped, or else the oldest of all.
const MAX_STREAMS: usize = 16;
/// Maximum number of events that are kept of one stream.
const MAX_EVENTS: usize = 256;
/// Maximum total length of the events that are kept of one stream, in bytes.
const MAX_LENGTH: usize = 256 * 1024;
/// Maximum length of a stream that is kept after it was sent, since it may get lost on its way, in bytes.
const MAX_COMPLETE: usize = 16 * 1024;

impl ResumableStreams {
    pub(crate) fn new(budget: Arc<ByteBudget>) -> Self {
        Self {
            kept: Mutex::default(),
            budget,
        }
    }

    /// Opens a stream.
    pub(crate) fn open(&self) -> Arc<ResumableStream> {
        let mut kept = self.lock();
        kept.last += 1;
        let stream = Arc::new(ResumableStream {
            number: kept.last,
            state: Mutex::default(),
            budget: Arc::clone(&self.budget),
        });
        if kept.streams.len() >= MAX_STREAMS {
            // The responses of the others have not been sent.
            let sent = kept.streams.iter().position(|stream| stream.lock().is_sent);
            kept.streams.remove(sent.unwrap_or_default());
        }
        kept.streams.push_back(Arc::clone(&stream));
        stream
    }

    /// Returns the events after this one, if the stream still has them.
    pub(crate) fn resume(&self, stream: u64, event: u64) -> Option<mpsc::Receiver<Bytes>> {
        let event = usize::try_from(event).ok()?;
        let found = {
            let kept = self.lock();
            kept.streams.iter().find(|kept| kept.number == stream).cloned()
        };
        found?.follow(event)
    }

    fn lock(&self) -> MutexGuard<'_, KeptStreams> {
        self.kept.lock()
    }
}

impl ResumableStream {
    /// Adds a message to the stream. Returns its event.
    pub(crate) fn push(&self, message: &[u8]) -> Bytes {
        let mut state = self.lock();
        let id = self.next_id(&mut state);
        let event = Bytes::from(sse_event(message, None, Some(&id)));
        state.keep(&event, &self.budget);
        event
    }

    /// Adds an event without a message to the stream: an id to resume from, and the pause before that. Returns the event.
    pub(crate) fn prime(&self, retry: Duration) -> Bytes {
        let mut state = self.lock();
        let id = self.next_id(&mut state);
        let event = Bytes::from(format!("id: {id}\nretry: {}\ndata: \n\n", retry.as_millis()));
        state.keep(&event, &self.budget);
        event
    }

    /// Ends the stream; a client can still resume it.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.has_ended = true;
        state.is_sent |= state.follower.take().is_some();
    }

    /// Ends a stream that was sent to its end.
    pub(crate) fn complete(&self) {
        let mut state = self.lock();
        if state.length > MAX_COMPLETE {
            state.forget(&self.budget);
        }
        state.is_sent = true;
        drop(state);
        self.end();
    }

    /// Returns the events after this one, and those to come. Replaces the client that has resumed the stream before.
    fn follow(&self, after: usize) -> Option<mpsc::Receiver<Bytes>> {
        let mut state = self.lock();
        let n_gone = state.n_events - state.events.len();
        let had = after
            .checked_sub(n_gone)
            .filter(|had| *had <= state.events.len())?;
        let (sender, receiver) = mpsc::channel(state.events.len() - had + MAX_EVENTS);
        for event in state.events.range(had..) {
            let _ = sender.try_send(event.clone());
        }
        state.is_sent |= state.has_ended;
        state.follower = Some(sender).filter(|_| !state.has_ended);
        Some(receiver)
    }

    fn next_id(&self, state: &mut State) -> String {
        state.n_events += 1;
        format!("{}-{}", self.number, state.n_events)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn keep(&mut self, event: &Bytes, budget: &ByteBudget) {
        while self.events.len() >= MAX_EVENTS || self.length + event.len() > MAX_LENGTH {
            let Some(oldest) = self.events.pop_front() else {
                break;
            };
            self.length -= oldest.len();
            budget.give_back(oldest.len());
        }
        if event.len() <= MAX_LENGTH && budget.take(event.len()) {
            self.length += event.len();
            self.events.push_back(event.clone());
        } else {
            // A stream with a gap cannot be resumed.
            self.forget(budget);
        }
        // A client that does not read fast enough may resume the stream again.
        self.follower
            .take_if(|follower| follower.try_send(event.clone()).is_err());
    }

    fn forget(&mut self, budget: &ByteBudget) {
        self.events = VecDeque::new();
        budget.give_back(mem::take(&mut self.length));
    }
}

impl Drop for ResumableStream {
    fn drop(&mut self) {
        let budget = Arc::clone(&self.budget);
        self.lock().forget(&budget);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_events_are_bounded_and_return_their_budget() {
        let budget = Arc::new(ByteBudget::default());
        let used = || budget.used();
        let streams = ResumableStreams::new(Arc::clone(&budget));
        let large = vec![b' '; MAX_LENGTH / 4];
        let stream = streams.open();
        for _ in 0..3 {
            stream.push(&large);
        }
        assert!(used() > 3 * large.len() && streams.resume(1, 0).is_some());
        // A stream that grows too long can be resumed after its first kept event, and no further back.
        stream.push(&large);
        assert!(used() > 3 * large.len() && used() <= MAX_LENGTH);
        assert!(streams.resume(1, 0).is_none() && streams.resume(1, 1).is_some());
        assert!(streams.resume(1, 4).is_some() && streams.resume(1, 5).is_none());
        // An event that exceeds the limit drops all events before it.
        stream.push(&vec![b' '; MAX_LENGTH]);
        assert!(used() == 0 && streams.resume(1, 4).is_none() && streams.resume(1, 5).is_some());
        let stream = streams.open();
        (0..=MAX_EVENTS).for_each(|_| drop(stream.push(b"{}")));
        assert!(streams.resume(2, 0).is_none());
        let mut missed = streams.resume(2, MAX_EVENTS as u64).expect("it is kept");
        let last = missed.try_recv().expect("one event was missed");
        assert!(
            last.starts_with(format!("id: 2-{}", MAX_EVENTS + 1).as_bytes()),
            "{last:?}"
        );
        assert!(missed.try_recv().is_err());
        stream.complete();
        // A long stream that was sent, or one of too many streams, cannot be resumed either.
        let before = used();
        let stream = streams.open();
        stream.push(&large);
        stream.complete();
        assert!(used() == before && streams.resume(3, 0).is_none());
        let stream = streams.open();
        stream.push(b"{}");
        stream.complete();
        drop(stream);
        assert!(used() > before && streams.resume(4, 0).is_some());
        (0..MAX_STREAMS).for_each(|_| drop(streams.open()));
        assert!(used() == before && streams.resume(4, 0).is_none());
        // Nor can a stream beyond the budget of all sessions.
        assert!(budget.take(ByteBudget::MAX - before));
        let stream = streams.open();
        stream.push(b"{}");
        assert!(used() == ByteBudget::MAX && streams.resume(21, 0).is_none());
    }

    #[test]
    fn streams_that_were_sent_make_room_for_others() {
        let streams = ResumableStreams::new(Arc::default());
        let is_kept = |number| streams.lock().streams.iter().any(|kept| kept.number == number);
        let long = streams.open();
        // Its client disconnected before the response.
        let lost = streams.open();
        lost.push(b"{}");
        lost.end();
        for _ in 0..2 * MAX_STREAMS {
            let short = streams.open();
            short.push(b"{}");
            short.complete();
        }
        assert!(is_kept(long.number) && is_kept(lost.number) && !is_kept(3));
        // The client has resumed it, which makes it like any other.
        assert!(streams.resume(lost.number, 0).is_some());
        drop(streams.open());
        assert!(is_kept(long.number) && !is_kept(lost.number));
        // If none was sent, the oldest is dropped.
        (0..MAX_STREAMS - 2).for_each(|_| drop(streams.open()));
        assert!(is_kept(long.number));
        drop(streams.open());
        assert!(!is_kept(long.number));
    }
}
