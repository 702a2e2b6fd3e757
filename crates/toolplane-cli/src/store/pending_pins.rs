//! Pins that are being read from a store.

use std::{
    future::Future,
    sync::{Arc, OnceLock},
};

use tokio::{
    sync::{Notify, watch},
    task::block_in_place,
};
use toolplane::{Pin, PinSet, Pins, PinsError, core::BoxFuture};

/// [`Pins`] that a task reads. Whoever needs them waits, which blocks the thread.
///
/// If they cannot be read, no definition is accepted, and [`PendingPins::finished`] returns the error: a program that offers tools
/// ends then.
pub(super) struct PendingPins {
    /// Begins the reading.
    begin: Notify,
    read: OnceLock<Result<Arc<dyn Pins>, PinsError>>,
    is_read: watch::Sender<bool>,
}

impl PendingPins {
    /// Starts the task, which begins to read when it is [told](Self::begin) or the pins are first needed. Needs a runtime with several
    /// threads, since a waiting thread runs no tasks.
    pub(super) fn new(
        pins: impl Future<Output = Result<Arc<dyn Pins>, PinsError>> + Send + 'static,
    ) -> Arc<Self> {
        let pending = Arc::new(Self {
            begin: Notify::new(),
            read: OnceLock::new(),
            is_read: watch::Sender::new(false),
        });
        let task = Unread(pending.clone());
        tokio::spawn(async move {
            task.0.begin.notified().await;
            let read = pins.await;
            task.0.read.get_or_init(|| read);
        });
        pending
    }

    /// Begins to read the pins.
    pub(super) fn begin(&self) {
        self.begin.notify_one();
    }

    /// Waits until the pins are read.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) async fn finished(&self) -> Result<(), PinsError> {
        self.begin();
        // The sender is in `self`.
        let _ = self.is_read.subscribe().wait_for(|is_read| *is_read).await;
        self.wait().map(drop)
    }

    fn wait(&self) -> Result<&Arc<dyn Pins>, PinsError> {
        let read = match self.read.get() {
            Some(read) => read,
            None => {
                self.begin();
                // The task that reads may be one that only this thread would run next.
                block_in_place(|| self.read.wait())
            }
        };
        read.as_ref().map_err(Clone::clone)
    }
}

/// Ends the wait also if the task panics or its runtime ends.
struct Unread(Arc<PendingPins>);

impl Drop for Unread {
    fn drop(&mut self) {
        let Self(pending) = self;
        pending.read.get_or_init(|| {
            Err(PinsError::Read {
                place: "the store".to_owned(),
                reason: "reading was given up".to_owned(),
            })
        });
        pending.is_read.send_replace(true);
    }
}

impl Pins for PendingPins {
    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // Whoever needs them learns of a failure.
            let _ = self.finished().await;
        })
    }

    fn snapshot(&self) -> Arc<PinSet> {
        match self.wait() {
            Ok(pins) => pins.snapshot(),
            Err(_) => Arc::new(PinSet::unknown()),
        }
    }

    fn add_first_used(&self, pins: Vec<Pin>) {
        if let Ok(read) = self.wait() {
            read.add_first_used(pins);
        }
    }

    fn accept(&self, pins: Vec<Pin>) -> BoxFuture<'_, Result<(), PinsError>> {
        Box::pin(async move { self.wait()?.accept(pins).await })
    }

    fn refresh(&self) -> BoxFuture<'_, Result<bool, PinsError>> {
        Box::pin(async move { self.wait()?.refresh().await })
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), PinsError>> {
        Box::pin(async move { self.wait()?.flush().await })
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use toolplane::{MemoryPins, PinKey, core::Feature};

    use super::*;

    fn pin() -> Pin {
        Pin::from_digest(PinKey::new("files", Feature::Tool, "read"), [1; 32])
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn whoever_needs_the_pins_waits_for_them() {
        let (send, receive) = tokio::sync::oneshot::channel();
        let pins = PendingPins::new(async { Ok(receive.await.expect("sent")) });
        let waiter = pins.clone();
        let waiting = tokio::task::spawn_blocking(move || waiter.snapshot());
        let read: Arc<dyn Pins> = Arc::new(MemoryPins::new([pin()].into_iter().collect()));
        assert!(send.send(read).is_ok());
        assert_eq!(waiting.await.expect("it ends").len(), 1);
        assert_eq!(pins.finished().await, Ok(()));
        let other = Pin::from_digest(PinKey::new("files", Feature::Tool, "write"), [2; 32]);
        pins.accept(vec![other]).await.expect("accepted");
        assert_eq!(pins.snapshot().len(), 2);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn pins_that_cannot_be_read_accept_nothing() {
        let error = PinsError::Read {
            place: "the store".to_owned(),
            reason: "it is away".to_owned(),
        };
        let failed = error.clone();
        let pins = PendingPins::new(async { Err(failed) });
        assert_eq!(pins.finished().await, Err(error.clone()));
        pins.add_first_used(vec![pin()]);
        assert!(pins.snapshot().is_empty() && pins.snapshot().is_unknown());
        assert_eq!(pins.accept(vec![pin()]).await, Err(error.clone()));
        assert_eq!(pins.refresh().await, Err(error));
    }

    /// The end of the runtime ends the wait.
    #[test]
    fn a_reading_that_is_given_up_is_an_error() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .expect("a runtime");
        let pins = runtime.block_on(async { PendingPins::new(pending()) });
        runtime.shutdown_background();
        assert!(pins.wait().is_err());
    }
}
