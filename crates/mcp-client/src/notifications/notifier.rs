use tokio::sync::watch;

use super::{ChangeCounts, queue::EventHub};

/// Publishes changes and events to subscribers. Shared by all connections that a server has over time.
#[derive(Debug, Clone)]
pub(crate) struct Notifier {
    changes: watch::Sender<ChangeCounts>,
    pub(crate) events: EventHub,
}

impl Default for Notifier {
    fn default() -> Self {
        Self {
            changes: watch::Sender::new(ChangeCounts::default()),
            events: EventHub::default(),
        }
    }
}

impl Notifier {
    pub(crate) fn subscribe(&self) -> watch::Receiver<ChangeCounts> {
        self.changes.subscribe()
    }

    pub(crate) fn tools_changed(&self) {
        self.changes.send_modify(|changes| changes.tools += 1);
    }

    pub(crate) fn resources_changed(&self) {
        self.changes.send_modify(|changes| changes.resources += 1);
    }

    pub(crate) fn prompts_changed(&self) {
        self.changes.send_modify(|changes| changes.prompts += 1);
    }

    /// Records a restart of the server: it has lost its state, and may have other lists.
    pub(crate) fn record_reopening(&self) {
        self.changes.send_modify(|changes| {
            changes.openings += 1;
            changes.count_gap();
        });
    }

    /// Records a period without notifications.
    pub(crate) fn record_gap(&self) {
        self.changes.send_modify(ChangeCounts::count_gap);
    }

    /// Records that every list may have changed.
    #[cfg(feature = "http")]
    pub(crate) fn record_all_changed(&self) {
        self.changes.send_modify(ChangeCounts::count_all);
    }
}
