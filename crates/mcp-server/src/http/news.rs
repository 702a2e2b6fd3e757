//! What a session is told beside the answers to its requests: kept while its client is away.

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

use super::{resumable::Budget, seats::Seat};
use crate::wants::Wants;

/// The news of one session, under ids that count up: of each list and each resource the latest alone.
///
/// A client reads them on one stream at a time: a new stream takes the place of the one before, whose connection may
/// have been lost without the server seeing it. What was told already is kept for a client that comes back with the
/// last id that it has seen.
pub(crate) struct News {
    state: Mutex<State>,
    wants: Arc<Wants>,
    budget: Arc<Budget>,
}

#[derive(Default)]
struct State {
    /// In the order of their numbers.
    kept: VecDeque<Kept>,
    /// How long the kept messages are together.
    length: usize,
    /// The number of the latest.
    last: u64,
    /// Up to which number they were given to a stream.
    told: u64,
    /// The highest number of those for which there was no room: who has not come so far is told that each resource that
    /// it watches may have changed.
    forgotten: u64,
    /// The number of the latest stream.
    stream: u64,
    /// The place that the open stream takes; nothing when there is none.
    seat: Option<Seat>,
    /// When the latest stream was given up.
    left: Option<Instant>,
    reader: Option<Waker>,
    has_ended: bool,
}

struct Kept {
    number: u64,
    /// What the message is about, where a later one makes it needless.
    subject: Option<(Subject, String)>,
    message: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// A list, by the name of its notification. There are few, and they are always kept.
    List,
    Resource,
    Task,
}

/// A stream on which a client reads its news; it is given up when this is dropped.
pub(super) struct NewsStream {
    news: Arc<News>,
    number: u64,
    /// The number of the latest notice that was read.
    at: u64,
    unsure: Option<Unsure>,
}

/// The resources that may have changed without a notice that was kept.
struct Unsure {
    left: vec::IntoIter<String>,
    /// The number of the latest of those notices.
    up_to: u64,
}

/// The stream number in the ids of these events: those of calls count from one.
pub(super) const STREAM: u64 = 0;

/// How many notices one session keeps beside those of its lists, and how long they may be together.
const MAX_KEPT: usize = 128;
const MAX_LENGTH: usize = 64 * 1024;

impl News {
    pub(super) fn new(wants: Arc<Wants>, budget: Arc<Budget>) -> Self {
        Self {
            state: Mutex::default(),
            wants,
            budget,
        }
    }

    /// Takes a notice.
    pub(crate) fn push(&self, method: &str, params: Option<&RawJson>) {
        let message = self.wants.frame(method, params);
        let subject = Subject::of(method, params);
        let mut state = self.lock();
        if state.has_ended {
            return;
        }
        if subject.is_some()
            && let Some(index) = state.kept.iter().position(|kept| kept.subject == subject)
        {
            state.remove(index, &self.budget);
        }
        state.last += 1;
        let kept = Kept {
            number: state.last,
            subject,
            message,
        };
        state.keep(kept, &self.budget);
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Opens a stream in the place of the one that there is, whose seat it takes; `seat` gives one if there is none.
    /// It goes on after the notice with this number, or else after the last one that was given to a stream.
    pub(super) fn open<E>(
        self: &Arc<Self>,
        after: Option<u64>,
        seat: impl FnOnce() -> Result<Seat, E>,
    ) -> Result<NewsStream, E> {
        let mut state = self.lock();
        let taken = match state.seat.take() {
            Some(seat) => seat,
            None => seat()?,
        };
        state.seat = Some(taken);
        state.stream += 1;
        let stream = NewsStream {
            news: Arc::clone(self),
            number: state.stream,
            at: after.unwrap_or(state.told),
            unsure: None,
        };
        let replaced = state.reader.take();
        drop(state);
        if let Some(replaced) = replaced {
            replaced.wake();
        }
        Ok(stream)
    }

    /// Whether there ever was a notice with this number.
    pub(super) fn has_had(&self, number: u64) -> bool {
        number <= self.lock().last
    }

    /// Whether a stream is open.
    pub(super) fn is_read(&self) -> bool {
        self.lock().seat.is_some()
    }

    /// When the latest stream was given up.
    pub(super) fn left(&self) -> Option<Instant> {
        self.lock().left
    }

    /// Ends the stream for good; nothing is kept any more.
    pub(super) fn end(&self) {
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
    fn keep(&mut self, kept: Kept, budget: &Budget) {
        let length = kept.length();
        let has_room = |state: &Self| state.kept.len() < MAX_KEPT && state.length + length <= MAX_LENGTH;
        while !has_room(self) && self.forget_oldest(budget) {}
        if kept.is_of_list() || has_room(self) && budget.take(length) {
            self.length += length;
            self.kept.push_back(kept);
        } else {
            self.forgotten = kept.number;
        }
    }

    fn next_after(&self, number: u64) -> Option<&Kept> {
        self.kept.iter().find(|kept| kept.number > number)
    }

    /// Makes room, and tells whether there was anything to forget.
    fn forget_oldest(&mut self, budget: &Budget) -> bool {
        let index = self.kept.iter().position(|kept| !kept.is_of_list());
        if let Some(index) = index {
            self.forgotten = self.forgotten.max(self.kept[index].number);
            self.remove(index, budget);
        }
        index.is_some()
    }

    fn remove(&mut self, index: usize, budget: &Budget) {
        if let Some(gone) = self.kept.remove(index) {
            self.length -= gone.length();
            budget.give(gone.length());
        }
    }
}

impl Kept {
    fn is_of_list(&self) -> bool {
        matches!(self.subject, Some((Subject::List, _)))
    }

    /// How much room it takes.
    fn length(&self) -> usize {
        if self.is_of_list() { 0 } else { self.message.len() }
    }
}

impl Subject {
    fn of(method: &str, params: Option<&RawJson>) -> Option<(Self, String)> {
        let (subject, key) = match method {
            method::TOOLS_LIST_CHANGED | method::PROMPTS_LIST_CHANGED | method::RESOURCES_LIST_CHANGED => {
                return Some((Self::List, method.to_owned()));
            }
            method::RESOURCES_UPDATED => (Self::Resource, "uri"),
            method::TASKS_STATUS => (Self::Task, "taskId"),
            _ => return None,
        };
        Some((subject, params?.get(key)?.string()?))
    }
}

impl NewsStream {
    /// The next event; nothing when the stream has ended, or another has taken its place.
    pub(super) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let news = Arc::clone(&self.news);
        let mut state = news.lock();
        if state.has_ended || state.stream != self.number {
            return Poll::Ready(None);
        }
        if let Some(event) = self.unsure(&mut state) {
            return Poll::Ready(Some(event));
        }
        let Some(next) = state.next_after(self.at) else {
            state.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        let event = sse_event(&next.message, None, Some(&id(next.number)));
        self.at = next.number;
        state.told = state.told.max(self.at);
        Poll::Ready(Some(event.into()))
    }

    /// Tells of the next resource that may have changed, where notices were forgotten.
    fn unsure(&mut self, state: &mut State) -> Option<Bytes> {
        let is_next = |state: &State| {
            state
                .next_after(self.at)
                .is_none_or(|next| next.number > state.forgotten)
        };
        if self.unsure.is_none() && self.at < state.forgotten && is_next(state) {
            self.unsure = Some(Unsure {
                left: self.news.wants.resources.all().into_iter(),
                up_to: state.forgotten,
            });
        }
        let unsure = self.unsure.as_mut()?;
        let uri = unsure.left.next();
        // Only the last one has an id: who is lost among these is told them all again.
        let mut last = None;
        if unsure.left.len() == 0 {
            self.at = unsure.up_to;
            state.told = state.told.max(self.at);
            self.unsure = None;
            last = Some(id(self.at));
        }
        let params = RawJson::from_members(&[("uri", RawJson::from(&*uri?))]);
        let message = self.news.wants.frame(method::RESOURCES_UPDATED, Some(&params));
        Some(sse_event(&message, None, last.as_deref()).into())
    }
}

/// The id of the event of a notice.
fn id(number: u64) -> String {
    format!("{STREAM}-{number}")
}

impl Drop for NewsStream {
    fn drop(&mut self) {
        let mut state = self.news.lock();
        if state.stream == self.number {
            state.left = Some(Instant::now());
            // Not under the lock: a seat has one of its own.
            let seat = mem::take(&mut state.seat);
            drop(state);
            drop(seat);
        }
    }
}

impl Drop for News {
    fn drop(&mut self) {
        let length = mem::take(&mut self.lock().length);
        self.budget.give(length);
    }
}

impl fmt::Debug for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("News").finish_non_exhaustive()
    }
}
