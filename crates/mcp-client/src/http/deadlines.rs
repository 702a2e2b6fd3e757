//! One timer for all requests of a connection, see [`crate::stream`]: setting one for each request would wake another
//! thread of an idle runtime whenever a request is made.

use std::{
    future::{Future, pending, poll_fn},
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Poll, Waker},
};

use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::shut_down;
use crate::{ClientError, exchange::Exchange};

/// The requests that wait, and the times at which they are looked at again.
#[derive(Default)]
pub(super) struct Deadlines {
    state: Mutex<State>,
    /// Tells that a deadline is earlier than what is waited for.
    earlier: Notify,
    is_closed: AtomicBool,
}

#[derive(Default)]
struct State {
    /// In no order: every request takes a place and leaves it, and only the timer looks for the earliest.
    waiting: Vec<Option<(Instant, Waker)>>,
    /// The places that nobody has.
    free: Vec<usize>,
    /// What the timer is set to.
    next: Option<Instant>,
}

impl Deadlines {
    /// Runs a request's work until its time is up, which progress moves, or the connection closes. It stays where it is
    /// pinned: taken by value it would be in the caller's future twice.
    pub(super) async fn keep<T>(
        &self,
        exchange: &Exchange,
        mut work: Pin<&mut impl Future<Output = Result<T, ClientError>>>,
    ) -> Result<T, ClientError> {
        let mut waiting = Waiting {
            deadlines: self,
            exchange,
            place: None,
        };
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(done),
            Poll::Pending => waiting.poll(cx).map(Err),
        })
        .await
    }

    /// Wakes those whose time is up, for as long as it is awaited.
    pub(super) async fn watch(&self) {
        loop {
            let next = self.wake_due(Instant::now());
            let timer = async {
                match next {
                    Some(next) => sleep_until(next).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = timer => {}
                () = self.earlier.notified() => {}
            }
        }
    }

    /// Wakes those whose time is up, and says when the next one's is.
    fn wake_due(&self, now: Instant) -> Option<Instant> {
        let mut due = Vec::new();
        let mut state = self.lock();
        let mut next = None;
        for (deadline, waker) in state.waiting.iter().flatten() {
            if *deadline <= now {
                // It leaves its place when it is polled.
                due.push(waker.clone());
            } else if next.is_none_or(|next| *deadline < next) {
                next = Some(*deadline);
            }
        }
        state.next = next;
        if next.is_none() && due.is_empty() {
            // Nobody waits: an idle connection has no need of the places.
            (state.waiting, state.free) = (Vec::new(), Vec::new());
        }
        drop(state);
        due.into_iter().for_each(Waker::wake);
        next
    }

    /// Ends what waits, and what comes after.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        let waiting: Vec<_> = self.lock().waiting.iter().flatten().cloned().collect();
        waiting.into_iter().for_each(|(_, waker)| waker.wake());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// The place of a request among those that wait, until this is dropped.
struct Waiting<'a> {
    deadlines: &'a Deadlines,
    exchange: &'a Exchange,
    place: Option<Place>,
}

struct Place {
    index: usize,
    deadline: Instant,
    waker: Waker,
}

impl Waiting<'_> {
    /// The error that ends the request, or waits for it.
    fn poll(&mut self, cx: &Context<'_>) -> Poll<ClientError> {
        let is_kept = |place: &Place| place.waker.will_wake(cx.waker()) && place.deadline > Instant::now();
        if !self.place.as_ref().is_some_and(is_kept) {
            self.leave();
            let deadline = self.exchange.deadline();
            if deadline <= Instant::now() {
                return Poll::Ready(self.exchange.timed_out());
            }
            self.enter(deadline, cx.waker());
        }
        // Looked at last: who closes wakes whom it finds.
        if self.deadlines.is_closed.load(Ordering::SeqCst) {
            return Poll::Ready(shut_down().sent(self.exchange.was_sent()));
        }
        Poll::Pending
    }

    fn enter(&mut self, deadline: Instant, waker: &Waker) {
        let mut state = self.deadlines.lock();
        let entry = Some((deadline, waker.clone()));
        let index = match state.free.pop() {
            Some(index) => {
                state.waiting[index] = entry;
                index
            }
            None => {
                state.waiting.push(entry);
                state.waiting.len() - 1
            }
        };
        let is_earlier = state.next.is_none_or(|next| deadline < next);
        if is_earlier {
            state.next = Some(deadline);
        }
        drop(state);
        if is_earlier {
            self.deadlines.earlier.notify_one();
        }
        self.place = Some(Place {
            index,
            deadline,
            waker: waker.clone(),
        });
    }

    fn leave(&mut self) {
        if let Some(place) = self.place.take() {
            let mut state = self.deadlines.lock();
            let left = state.waiting[place.index].take();
            state.free.push(place.index);
            drop(state);
            drop(left);
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, sync::Arc, time::Duration};

    use tokio::time::sleep;

    use super::*;
    use crate::{ClientErrorKind, RequestOptions};

    fn exchange(seconds: u64) -> Exchange {
        Exchange::new(RequestOptions {
            max_total: Duration::from_secs(3600),
            ..RequestOptions::with_timeout(Duration::from_secs(seconds))
        })
    }

    fn never() -> impl Future<Output = Result<(), ClientError>> {
        pending()
    }

    #[tokio::test(start_paused = true)]
    async fn each_request_ends_at_its_own_time() {
        let deadlines = Arc::new(Deadlines::default());
        let watched = Arc::clone(&deadlines);
        let watching = tokio::spawn(async move { watched.watch().await });
        let start = Instant::now();
        let ended = |seconds: u64| {
            let deadlines = Arc::clone(&deadlines);
            async move {
                let error = deadlines
                    .keep(&exchange(seconds), pin!(never()))
                    .await
                    .expect_err("never");
                assert!(matches!(error.kind(), ClientErrorKind::Timeout(_)), "{error}");
                start.elapsed().as_secs()
            }
        };
        // The one that is set first is not the earliest, and one comes when none is left.
        assert_eq!(
            tokio::join!(ended(30), ended(5), ended(60), ended(5)),
            (30, 5, 60, 5)
        );
        assert_eq!(ended(7).await, 67);
        // Progress moves a deadline that is waited for already.
        let exchange = exchange(10);
        let told = async {
            sleep(Duration::from_secs(6)).await;
            exchange.progress(raw_json::RawJson::object());
        };
        let work = pin!(never());
        let (ended, ()) = tokio::join!(deadlines.keep(&exchange, work), told);
        assert!(ended.is_err(), "it never answers");
        assert_eq!(start.elapsed().as_secs(), 67 + 16);
        // What is done in time has no deadline, and leaves none behind.
        let work = async {
            sleep(Duration::from_secs(3)).await;
            Ok(7)
        };
        assert_eq!(deadlines.keep(&self::exchange(4), pin!(work)).await.ok(), Some(7));
        assert!(deadlines.lock().waiting.iter().all(Option::is_none));
        watching.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn closing_ends_what_waits_and_what_comes_after() {
        let deadlines = Deadlines::default();
        let exchange = exchange(60);
        let closing = async {
            sleep(Duration::from_secs(1)).await;
            deadlines.close();
        };
        let work = pin!(never());
        let (ended, ()) = tokio::join!(deadlines.keep(&exchange, work), closing);
        assert!(matches!(
            ended.expect_err("closed").kind(),
            ClientErrorKind::Closed(_)
        ));
        let after = deadlines.keep(&exchange, pin!(never())).await;
        assert!(matches!(
            after.expect_err("closed").kind(),
            ClientErrorKind::Closed(_)
        ));
    }
}
