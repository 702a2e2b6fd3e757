//! Leaves work alone that has nothing to do.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures_util::task::AtomicWaker;

/// What the work on the requests of one connection is woken by. They are worked on one after the other.
pub(super) struct Gate {
    signal: Arc<Signal>,
    /// The same as `signal`.
    waker: Waker,
}

#[derive(Default)]
struct Signal {
    was_woken: AtomicBool,
    task: AtomicWaker,
}

/// Work that is polled only when it was woken itself.
///
/// The task of a connection is woken for what comes over the socket, for ticks and by hyper itself, and polls whatever
/// it waits for: without this, a call with all its layers, of which nothing has come.
pub(super) struct Gated<'a, F> {
    work: Pin<&'a mut F>,
    gate: &'a Gate,
    has_begun: bool,
}

impl Gate {
    pub(super) fn new() -> Self {
        let signal = Arc::<Signal>::default();
        Self {
            waker: Waker::from(Arc::clone(&signal)),
            signal,
        }
    }

    /// Puts the gate before some work.
    pub(super) fn before<'a, F>(&'a self, work: Pin<&'a mut F>) -> Gated<'a, F> {
        Gated {
            work,
            gate: self,
            has_begun: false,
        }
    }
}

impl<F: Future> Future for Gated<'_, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self {
            work,
            gate,
            has_begun,
        } = self.get_mut();
        // First, so that whoever wakes the work from here on wakes the task.
        gate.signal.task.register(cx.waker());
        let was_woken = gate.signal.was_woken.swap(false, Ordering::AcqRel);
        if *has_begun && !was_woken {
            return Poll::Pending;
        }
        *has_begun = true;
        work.as_mut().poll(&mut Context::from_waker(&gate.waker))
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.was_woken.store(true, Ordering::Release);
        self.task.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        pin::pin,
        sync::{Mutex, atomic::AtomicUsize},
    };

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn work_is_polled_when_it_begins_and_when_it_is_woken() {
        let task = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&task));
        let mut cx = Context::from_waker(&waker);
        let gate = Gate::new();
        let polls = AtomicUsize::new(0);
        let inner = Mutex::new(None);
        let work = || {
            poll_fn(|cx: &mut Context<'_>| {
                polls.fetch_add(1, Ordering::SeqCst);
                *inner.lock().expect("no poll panics") = Some(cx.waker().clone());
                Poll::<()>::Pending
            })
        };
        let wake = || {
            let inner = inner.lock().expect("no poll panics");
            inner.as_ref().expect("it was polled").wake_by_ref();
        };
        let n_polls = || polls.load(Ordering::SeqCst);
        for round in 0..3 {
            // The gate is that of all work of the connection, one after the other.
            let work = pin!(work());
            let mut work = gate.before(work);
            for (woken, expected) in [(false, 1), (false, 1), (true, 2), (false, 2)] {
                if woken {
                    wake();
                }
                assert!(Pin::new(&mut work).poll(&mut cx).is_pending());
                assert_eq!(n_polls(), 2 * round + expected);
            }
            assert_eq!(task.0.load(Ordering::SeqCst), round + 1);
        }
    }

    #[test]
    fn work_that_wakes_itself_is_polled_again() {
        let task = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&task));
        let mut polls = 0;
        let gate = Gate::new();
        let work = pin!(poll_fn(|cx| {
            polls += 1;
            if polls < 3 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(())
        }));
        let mut work = gate.before(work);
        for expected in 1..3 {
            assert!(
                Pin::new(&mut work)
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
            );
            assert_eq!(task.0.load(Ordering::SeqCst), expected);
        }
        assert!(
            Pin::new(&mut work)
                .poll(&mut Context::from_waker(&waker))
                .is_ready()
        );
    }
}
