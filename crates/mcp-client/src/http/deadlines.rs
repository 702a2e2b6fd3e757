//! One shared timer for all requests of a connection, like in [`crate::stream`]: a timer for each request would wake
//! another thread of an idle runtime.

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

use crate::{ClientError, exchange::Exchange};

/// Registered requests and their deadlines.
#[derive(Default)]
pub(super) struct Deadlines {
    state: Mutex<State>,
    /// Signals a deadline earlier than the one the timer is set to.
    earlier: Notify,
    is_closed: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Unordered slots: every request takes and leaves one, and only the timer searches for the earliest deadline.
    registered: Vec<Option<(Instant, Waker)>>,
    /// Indexes of free slots.
    free: Vec<usize>,
    /// Deadline that the timer is set to.
    next: Option<Instant>,
}

impl Deadlines {
    /// Runs `work` until the deadline of the request, which progress extends, or until the connection closes. `work` is
    /// pinned by the caller: passed by value, the caller's future would contain it twice.
    pub(super) async fn run<T>(
        &self,
        exchange: &Exchange,
        mut work: Pin<&mut impl Future<Output = Result<T, ClientError>>>,
    ) -> Result<T, ClientError> {
        let mut registered = Registration {
            deadlines: self,
            exchange,
            slot: None,
        };
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(done),
            Poll::Pending => registered.poll(cx).map(Err),
        })
        .await
    }

    /// Wakes overdue requests while it is awaited.
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

    /// Wakes overdue requests, and returns the next deadline.
    fn wake_due(&self, now: Instant) -> Option<Instant> {
        let mut due = Vec::new();
        let mut state = self.lock();
        let mut next = None;
        for (deadline, waker) in state.registered.iter().flatten() {
            if *deadline <= now {
                // The request leaves its slot when it is polled.
                due.push(waker.clone());
            } else if next.is_none_or(|next| *deadline < next) {
                next = Some(*deadline);
            }
        }
        state.next = next;
        if next.is_none() && due.is_empty() {
            // An idle connection keeps no slots.
            (state.registered, state.free) = (Vec::new(), Vec::new());
        }
        drop(state);
        due.into_iter().for_each(Waker::wake);
        next
    }

    /// Ends all current and future requests.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        let registered: Vec<_> = self.lock().registered.iter().flatten().cloned().collect();
        registered.into_iter().for_each(|(_, waker)| waker.wake());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Slot of a request, released on drop.
struct Registration<'a> {
    deadlines: &'a Deadlines,
    exchange: &'a Exchange,
    slot: Option<Slot>,
}

struct Slot {
    index: usize,
    deadline: Instant,
    waker: Waker,
}

impl Registration<'_> {
    /// Returns the error that ends the request, or registers its deadline.
    fn poll(&mut self, cx: &Context<'_>) -> Poll<ClientError> {
        let is_current = |slot: &Slot| slot.waker.will_wake(cx.waker()) && slot.deadline > Instant::now();
        if !self.slot.as_ref().is_some_and(is_current) {
            self.leave();
            let deadline = self.exchange.deadline();
            if deadline <= Instant::now() {
                return Poll::Ready(self.exchange.timed_out());
            }
            self.enter(deadline, cx.waker());
        }
        // Checked last: `close` wakes only requests that are registered.
        if self.deadlines.is_closed.load(Ordering::SeqCst) {
            return Poll::Ready(ClientError::shut_down().with_sent(self.exchange.was_sent()));
        }
        Poll::Pending
    }

    fn enter(&mut self, deadline: Instant, waker: &Waker) {
        let mut state = self.deadlines.lock();
        let entry = Some((deadline, waker.clone()));
        let index = match state.free.pop() {
            Some(index) => {
                state.registered[index] = entry;
                index
            }
            None => {
                state.registered.push(entry);
                state.registered.len() - 1
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
        self.slot = Some(Slot {
            index,
            deadline,
            waker: waker.clone(),
        });
    }

    fn leave(&mut self) {
        if let Some(slot) = self.slot.take() {
            let mut state = self.deadlines.lock();
            let left = state.registered[slot.index].take();
            state.free.push(slot.index);
            drop(state);
            drop(left);
        }
    }
}

impl Drop for Registration<'_> {
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
        Exchange::new(
            RequestOptions::with_timeout(Duration::from_secs(seconds)).max_total(Duration::from_secs(3600)),
        )
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
                    .run(&exchange(seconds), pin!(never()))
                    .await
                    .expect_err("never");
                assert!(matches!(error.kind(), ClientErrorKind::Timeout(_)), "{error}");
                start.elapsed().as_secs()
            }
        };
        // The first deadline is not the earliest, and one is registered when none is left.
        assert_eq!(
            tokio::join!(ended(30), ended(5), ended(60), ended(5)),
            (30, 5, 60, 5)
        );
        assert_eq!(ended(7).await, 67);
        // Progress extends a registered deadline.
        let exchange = exchange(10);
        let progress = async {
            sleep(Duration::from_secs(6)).await;
            exchange.report_progress(raw_json::RawJson::object());
        };
        let work = pin!(never());
        let (ended, ()) = tokio::join!(deadlines.run(&exchange, work), progress);
        assert!(ended.is_err(), "it never answers");
        assert_eq!(start.elapsed().as_secs(), 67 + 16);
        // Finished work leaves no deadline behind.
        let work = async {
            sleep(Duration::from_secs(3)).await;
            Ok(7)
        };
        assert_eq!(deadlines.run(&self::exchange(4), pin!(work)).await.ok(), Some(7));
        assert!(deadlines.lock().registered.iter().all(Option::is_none));
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
        let (ended, ()) = tokio::join!(deadlines.run(&exchange, work), closing);
        assert!(matches!(
            ended.expect_err("closed").kind(),
            ClientErrorKind::Closed(_)
        ));
        let after = deadlines.run(&exchange, pin!(never())).await;
        assert!(matches!(
            after.expect_err("closed").kind(),
            ClientErrorKind::Closed(_)
        ));
    }
}
