//! Keeps a task that wakes itself out of the scheduler.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures_util::task::AtomicWaker;

/// Future that is polled again at once if it was woken while it was polled.
///
/// hyper wakes the task of a connection whenever the body of a request is dropped, usually in the same poll that answers the
/// request. A task that wakes itself goes to the end of the queue, for which tokio wakes another thread: once for every
/// request, without need.
pub(super) struct SelfWake<F> {
    future: F,
    signal: Arc<Signal>,
    /// Waker of `signal`.
    waker: Waker,
}

/// Maximum number of polls in a row, before other tasks run.
const MAX_POLLS: usize = 4;

struct Signal {
    state: AtomicU8,
    task: AtomicWaker,
}

/// The future is being polled: a wake-up need only be recorded.
const POLLED: u8 = 1;
/// The future was woken while it was polled.
const WOKEN: u8 = 2;

impl<F> SelfWake<F> {
    pub(super) fn new(future: F) -> Self {
        let signal = Arc::new(Signal {
            state: AtomicU8::new(0),
            task: AtomicWaker::new(),
        });
        Self {
            future,
            waker: Waker::from(Arc::clone(&signal)),
            signal,
        }
    }

    pub(super) fn get_mut(&mut self) -> &mut F {
        &mut self.future
    }
}

impl<F: Future + Unpin> Future for SelfWake<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self {
            future,
            signal,
            waker,
        } = self.get_mut();
        signal.task.register(cx.waker());
        for _ in 0..MAX_POLLS {
            signal.state.swap(POLLED, Ordering::AcqRel);
            let polled = Pin::new(&mut *future).poll(&mut Context::from_waker(waker));
            // Later wake-ups wake the task.
            let was_woken = signal.state.swap(0, Ordering::AcqRel) & WOKEN != 0;
            if polled.is_ready() || !was_woken {
                return polled;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.fetch_or(WOKEN, Ordering::AcqRel) & POLLED == 0 {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, pin::pin, sync::atomic::AtomicUsize};

    use futures_util::FutureExt as _;
    use http::{Request, Response};
    use http_body_util::{BodyExt as _, Full};
    use hyper::{body::Incoming, server::conn::http1, service::service_fn};
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Polls once a future that wakes itself in its first polls. Returns the numbers of polls and of wake-ups of its task.
    fn polls_and_wakes(wakes_itself: usize) -> (usize, usize) {
        let count = Arc::new(Count::default());
        let mut polls = 0;
        let future = poll_fn(|cx| {
            polls += 1;
            if polls <= wakes_itself {
                cx.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        });
        let mut future = SelfWake::new(Box::pin(future));
        let waker = Waker::from(Arc::clone(&count));
        assert!(
            Pin::new(&mut future)
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        drop(future);
        (polls, count.0.load(Ordering::SeqCst))
    }

    #[test]
    fn a_future_that_wakes_itself_is_polled_again_and_its_task_sleeps() {
        assert_eq!(polls_and_wakes(0), (1, 0));
        assert_eq!(polls_and_wakes(2), (3, 0));
    }

    #[test]
    fn a_future_that_keeps_waking_itself_yields_to_others() {
        assert_eq!(polls_and_wakes(usize::MAX), (MAX_POLLS, 1));
    }

    /// Polls once a connection of hyper's server that has received a request. Returns the number of wake-ups of its task.
    fn wakes_of_a_connection(has_self_wake: bool) -> usize {
        let (mut client, server) = tokio::io::duplex(1024);
        let asking = client.write_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nhi");
        assert!(asking.now_or_never().is_some());
        let service = service_fn(async |request: Request<Incoming>| {
            let body = request.into_body().collect().await?.to_bytes();
            Ok::<_, hyper::Error>(Response::new(Full::new(body)))
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(server), service);
        let mut connection = pin!(connection);
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut cx = Context::from_waker(&waker);
        let polled = if has_self_wake {
            Pin::new(&mut SelfWake::new(connection)).poll(&mut cx)
        } else {
            connection.as_mut().poll(&mut cx)
        };
        assert!(polled.is_pending());
        let mut answer = [0; 15];
        assert!(client.read_exact(&mut answer).now_or_never().is_some());
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
        count.0.load(Ordering::SeqCst)
    }

    /// Shows whether hyper still wakes the task. Once the first number is zero, this module is not needed any more.
    #[test]
    fn hyper_wakes_the_task_that_answers_a_request() {
        assert_eq!(wakes_of_a_connection(false), 1);
        assert_eq!(wakes_of_a_connection(true), 0);
    }

    #[test]
    fn a_future_that_rests_is_woken_by_its_task() {
        let count = Arc::new(Count::default());
        let mut inner = None;
        let mut future = SelfWake::new(poll_fn(|cx| {
            inner = Some(cx.waker().clone());
            Poll::<()>::Pending
        }));
        let waker = Waker::from(Arc::clone(&count));
        for round in 1..=3 {
            assert!(
                Pin::new(&mut future)
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
            );
            future.waker.wake_by_ref();
            assert_eq!(count.0.load(Ordering::SeqCst), round);
        }
        drop(future);
        assert!(inner.is_some_and(|inner| !inner.will_wake(&waker)));
    }
}
