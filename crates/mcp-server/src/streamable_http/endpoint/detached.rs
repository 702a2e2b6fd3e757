use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use tokio::runtime::Handle;

/// Semaphore for the calls of legacy clients that go on after their connection was lost: in that era only a notification of
/// the client cancels a call. Without a permit, a lost connection does cancel the call.
#[derive(Debug)]
pub(super) struct DetachedCalls {
    count: AtomicUsize,
    max: usize,
    is_closed: AtomicBool,
}

/// Permit for one call, given back when dropped.
struct DetachedPermit(Arc<DetachedCalls>);

impl DetachedCalls {
    pub(super) fn new(max: usize) -> Self {
        Self {
            count: AtomicUsize::new(0),
            max,
            is_closed: AtomicBool::new(false),
        }
    }

    /// Refuses all further calls: while the server stops, a lost connection cancels its calls.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// Runs a call on a task of its own. Returns `false`, and drops the call, if there is no permit for it.
    pub(super) fn spawn<F>(self: &Arc<Self>, call: F) -> bool
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (Some(permit), Ok(runtime)) = (self.try_acquire(), Handle::try_current()) else {
            return false;
        };
        runtime.spawn(async move {
            let _permit = permit;
            call.await;
        });
        true
    }

    fn try_acquire(self: &Arc<Self>) -> Option<DetachedPermit> {
        let before = self.count.fetch_add(1, Ordering::Relaxed);
        let permit = DetachedPermit(Arc::clone(self));
        let has_room = before < self.max && !self.is_closed.load(Ordering::Relaxed);
        has_room.then_some(permit)
    }
}

impl Drop for DetachedPermit {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}
