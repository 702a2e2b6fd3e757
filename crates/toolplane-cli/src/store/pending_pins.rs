//! Pins that are being read from a store.

use std::{
    future::Future,
    sync::{Arc, OnceLock},
};

use tokio::sync::watch;
use toolplane::{Pin, PinSet, Pins, PinsError, core::BoxFuture};

/// [`Pins`] that a task reads. Whoever needs them waits, which blocks the thread.
///
/// If they cannot be read, there are none, no definition is accepted, and [`PendingPins::finished`] returns the error: a program
/// that offers tools checks it first.
pub(super) struct PendingPins {
    read: OnceLock<Result<Arc<dyn Pins>, PinsError>>,
    is_read: watch::Sender<bool>,
}

impl PendingPins {
    /// Starts the task. Needs a runtime with several threads, since a waiting thread runs no tasks.
    pub(super) fn read(
        pins: impl Future<Output = Result<Arc<dyn Pins>, PinsError>> + Send + 'static,
    ) -> Arc<Self> {
        let pending = Arc::new(Self {
            read: OnceLock::new(),
            is_read: watch::Sender::new(false),
        });
        let task = Unread(pending.clone());
        tokio::spawn(async move {
            let read = pins.await;
            task.0.read.get_or_init(|| read);
        });
        pending
    }

    /// Waits until the pins are read.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) async fn finished(&self) -> Result<(), PinsError> {
        // The sender is in `self`.
        let _ = self.is_read.subscribe().wait_for(|is_read| *is_read).await;
        self.wait().map(drop)
    }

    fn wait(&self) -> Result<&Arc<dyn Pins>, PinsError> {
        self.read.wait().as_ref().map_err(Clone::clone)
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
    fn snapshot(&self) -> Arc<PinSet> {
        self.wait().map(|pins| pins.snapshot()).unwrap_or_default()
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
}
