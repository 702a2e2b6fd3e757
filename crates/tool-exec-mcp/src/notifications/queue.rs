use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::mpsc};
use tool_core::Update;

use super::Notifier;

/// Queue of updates. A task of its own delivers them in their order, since the sender cannot wait for listeners.
pub(crate) struct UpdateQueue {
    sender: mpsc::UnboundedSender<Update>,
    /// Receiving end, until the delivering task takes it.
    receiver: Mutex<Option<mpsc::UnboundedReceiver<Update>>>,
    is_delivering: AtomicBool,
    notifier: Arc<Notifier>,
}

impl UpdateQueue {
    pub(crate) fn new(notifier: Arc<Notifier>) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self {
            sender,
            receiver: Mutex::new(Some(receiver)),
            is_delivering: AtomicBool::new(false),
            notifier,
        }
    }

    /// Appends an update. Call [`deliver`](Self::deliver) afterwards, outside of any lock.
    pub(crate) fn push(&self, update: Update) {
        // The receiver lives as long as the queue or the delivering task.
        let _ = self.sender.send(update);
    }

    /// Starts the delivering task unless it runs. Outside of a runtime, updates wait for a later call.
    pub(crate) fn deliver(&self) {
        if self.is_delivering.load(Ordering::Relaxed) {
            return;
        }
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let receiver = self.receiver.lock().take();
        let Some(mut receiver) = receiver else { return };
        self.is_delivering.store(true, Ordering::Relaxed);
        let notifier = self.notifier.clone();
        runtime.spawn(async move {
            while let Some(update) = receiver.recv().await {
                notifier.notify(&update);
            }
        });
    }
}
