use std::{
    collections::VecDeque,
    mem,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use mcp_wire::sse_event;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;

/// The streams of a session on which calls are answered, so that a client that lost one can come back for the rest.
#[derive(Debug)]
pub(super) struct Resumables {
    kept: Mutex<Kept>,
    budget: Arc<Budget>,
}

/// How many bytes of events are kept for all sessions together.
#[derive(Debug, Default)]
pub(super) struct Budget(AtomicUsize);

#[derive(Debug, Default)]
struct Kept {
    last: u64,
    streams: VecDeque<Arc<Resumable>>,
}

/// One stream: its events under ids, until all of it is on its way.
#[derive(Debug)]
pub(super) struct Resumable {
    number: u64,
    state: Mutex<State>,
    budget: Arc<Budget>,
}

#[derive(Debug, Default)]
struct State {
    /// The last events: the older ones go when they are too many, and all when they are no longer needed.
    events: VecDeque<Bytes>,
    /// How many there were.
    n_events: usize,
    /// How long the events are together.
    length: usize,
    has_ended: bool,
    /// Whether all of it, up to its end, is on its way to the client.
    is_told: bool,
    /// The client that came back, and reads on.
    follower: Option<mpsc::Sender<Bytes>>,
}

/// How many streams a session keeps. The oldest goes of those that a client has had, or else the oldest of all.
const MAX_STREAMS: usize = 16;
/// How many events of one stream are kept, and how long they may be together.
const MAX_EVENTS: usize = 256;
const MAX_LENGTH: usize = 256 * 1024;
/// How long the streams of all sessions may be together.
const MAX_TOTAL: usize = 32 * 1024 * 1024;
/// How long a stream may be that is kept although all of it is on its way, where it may still get lost.
const MAX_COMPLETE: usize = 16 * 1024;

impl Budget {
    pub(super) fn take(&self, length: usize) -> bool {
        let before = self.0.fetch_add(length, Ordering::Relaxed);
        if before + length > MAX_TOTAL {
            self.give(length);
            return false;
        }
        true
    }

    pub(super) fn give(&self, length: usize) {
        self.0.fetch_sub(length, Ordering::Relaxed);
    }
}

impl Resumables {
    pub(super) fn new(budget: Arc<Budget>) -> Self {
        Self {
            kept: Mutex::default(),
            budget,
        }
    }

    /// Begins a stream.
    pub(super) fn open(&self) -> Arc<Resumable> {
        let mut kept = self.lock();
        kept.last += 1;
        let stream = Arc::new(Resumable {
            number: kept.last,
            state: Mutex::default(),
            budget: Arc::clone(&self.budget),
        });
        if kept.streams.len() >= MAX_STREAMS {
            // Of the others nobody has the answers yet.
            let told = kept.streams.iter().position(|stream| stream.lock().is_told);
            kept.streams.remove(told.unwrap_or_default());
        }
        kept.streams.push_back(Arc::clone(&stream));
        stream
    }

    /// What came after an event of a stream that is still kept.
    pub(super) fn resume(&self, stream: u64, event: u64) -> Option<mpsc::Receiver<Bytes>> {
        let event = usize::try_from(event).ok()?;
        let found = {
            let kept = self.lock();
            kept.streams.iter().find(|kept| kept.number == stream).cloned()
        };
        found?.follow(event)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock()
    }
}

impl Resumable {
    /// Puts a message onto the stream, and gives it as an event.
    pub(super) fn push(&self, message: &[u8]) -> Bytes {
        let mut state = self.lock();
        let id = self.next_id(&mut state);
        let event = Bytes::from(sse_event(message, None, Some(&id)));
        state.keep(&event, &self.budget);
        event
    }

    /// Puts an event without a message onto the stream: an id to come back with, and when.
    pub(super) fn prime(&self, retry: Duration) -> Bytes {
        let mut state = self.lock();
        let id = self.next_id(&mut state);
        let event = Bytes::from(format!("id: {id}\nretry: {}\ndata: \n\n", retry.as_millis()));
        state.keep(&event, &self.budget);
        event
    }

    /// Ends the stream; a client can come back for it.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.has_ended = true;
        state.is_told |= state.follower.take().is_some();
    }

    /// Ends the stream, all of which is on its way.
    pub(super) fn complete(&self) {
        let mut state = self.lock();
        if state.length > MAX_COMPLETE {
            state.forget(&self.budget);
        }
        state.is_told = true;
        drop(state);
        self.end();
    }

    /// Gives what came after an event, and what comes from now on. Who followed before does no longer.
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
        state.is_told |= state.has_ended;
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
    fn keep(&mut self, event: &Bytes, budget: &Budget) {
        while self.events.len() >= MAX_EVENTS || self.length + event.len() > MAX_LENGTH {
            let Some(oldest) = self.events.pop_front() else {
                break;
            };
            self.length -= oldest.len();
            budget.give(oldest.len());
        }
        if event.len() <= MAX_LENGTH && budget.take(event.len()) {
            self.length += event.len();
            self.events.push_back(event.clone());
        } else {
            // What comes after it could not be told from it.
            self.forget(budget);
        }
        // One that does not read fast enough may come back again.
        self.follower
            .take_if(|follower| follower.try_send(event.clone()).is_err());
    }

    fn forget(&mut self, budget: &Budget) {
        self.events = VecDeque::new();
        budget.give(mem::take(&mut self.length));
    }
}

impl Drop for Resumable {
    fn drop(&mut self) {
        let budget = Arc::clone(&self.budget);
        self.lock().forget(&budget);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_and_given_back() {
        let budget = Arc::new(Budget::default());
        let used = || budget.0.load(Ordering::Relaxed);
        let streams = Resumables::new(Arc::clone(&budget));
        let large = vec![b' '; MAX_LENGTH / 4];
        let stream = streams.open();
        for _ in 0..3 {
            stream.push(&large);
        }
        assert!(used() > 3 * large.len() && streams.resume(1, 0).is_some());
        // One that grows too long can be resumed behind what is kept of it, and no further back.
        stream.push(&large);
        assert!(used() > 3 * large.len() && used() <= MAX_LENGTH);
        assert!(streams.resume(1, 0).is_none() && streams.resume(1, 1).is_some());
        assert!(streams.resume(1, 4).is_some() && streams.resume(1, 5).is_none());
        // An event that is too large by itself takes what was before it along.
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
        // Neither can a long one that is on its way, or one of too many streams.
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
        // Nor anything beyond what all sessions may have.
        assert!(budget.take(MAX_TOTAL - before));
        let stream = streams.open();
        stream.push(b"{}");
        assert!(used() == MAX_TOTAL && streams.resume(21, 0).is_none());
    }

    #[test]
    fn streams_that_a_client_has_had_make_room_for_others() {
        let streams = Resumables::new(Arc::default());
        let is_kept = |number| streams.lock().streams.iter().any(|kept| kept.number == number);
        let long = streams.open();
        // Its client went away before the answer.
        let lost = streams.open();
        lost.push(b"{}");
        lost.end();
        for _ in 0..2 * MAX_STREAMS {
            let short = streams.open();
            short.push(b"{}");
            short.complete();
        }
        assert!(is_kept(long.number) && is_kept(lost.number) && !is_kept(3));
        // The client has come back for it, which makes it like any other.
        assert!(streams.resume(lost.number, 0).is_some());
        drop(streams.open());
        assert!(is_kept(long.number) && !is_kept(lost.number));
        // Where none has been had, the oldest goes.
        (0..MAX_STREAMS - 2).for_each(|_| drop(streams.open()));
        assert!(is_kept(long.number));
        drop(streams.open());
        assert!(!is_kept(long.number));
    }
}
