use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::mpsc};
use tool_core::Update;

use super::Notifier;

/// Queue of updates. A task of its own delivers them in their order, since the sender cannot wait for listeners.
pub(crate) struct UpdateQueue {
    /// Made with the first update: most servers of a large configuration have none, and a channel takes kilobytes.
    channel: OnceLock<Channel>,
    is_delivering: AtomicBool,
    notifier: Arc<Notifier>,
}

struct Channel {
    sender: mpsc::UnboundedSender<Update>,
    /// Receiving end, until the delivering task takes it.
    receiver: Mutex<Option<mpsc::UnboundedReceiver<Update>>>,
}

impl UpdateQueue {
    pub(crate) fn new(notifier: Arc<Notifier>) -> Self {
        Self {
            channel: OnceLock::new(),
            is_delivering: AtomicBool::new(false),
            notifier,
        }
    }

    /// Appends an update. Call [`deliver`](Self::deliver) afterwards, outside of any lock.
    pub(crate) fn push(&self, update: Update) {
        let channel = self.channel.get_or_init(|| {
            let (sender, receiver) = mpsc::unbounded_channel();
            Channel {
                sender,
                receiver: Mutex::new(Some(receiver)),
            }
        });
        // The receiver lives as long as the queue or the delivering task.
        let _ = channel.sender.send(update);
    }

    /// Starts the delivering task unless it runs. Outside of a runtime, updates wait for a later call.
    pub(crate) fn deliver(&self) {
        if self.is_delivering.load(Ordering::Relaxed) {
            return;
        }
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let receiver = self
            .channel
            .get()
            .and_then(|channel| channel.receiver.lock().take());
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
