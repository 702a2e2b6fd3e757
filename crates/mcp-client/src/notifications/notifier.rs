use tokio::sync::watch;

use super::{Changes, queue::EventHub};

/// The sending side, shared by all connections that a server has over time.
#[derive(Debug, Clone)]
pub(crate) struct ChangeSink {
    changes: watch::Sender<Changes>,
    pub(crate) events: EventHub,
}

impl Default for ChangeSink {
    fn default() -> Self {
        Self {
            changes: watch::Sender::new(Changes::default()),
            events: EventHub::default(),
        }
    }
}

impl ChangeSink {
    pub(crate) fn subscribe(&self) -> watch::Receiver<Changes> {
        self.changes.subscribe()
    }

    pub(crate) fn tools(&self) {
        self.changes.send_modify(|changes| changes.tools += 1);
    }

    pub(crate) fn resources(&self) {
        self.changes.send_modify(|changes| changes.resources += 1);
    }

    pub(crate) fn prompts(&self) {
        self.changes.send_modify(|changes| changes.prompts += 1);
    }

    /// A server that was started again has forgotten what it was told, and may have other lists.
    pub(crate) fn opened_anew(&self) {
        self.changes.send_modify(|changes| {
            changes.openings += 1;
            changes.gap();
        });
    }

    /// For a time, nobody heard what the server tells.
    pub(crate) fn gap(&self) {
        self.changes.send_modify(Changes::gap);
    }

    /// Every list may have changed.
    pub(crate) fn everything(&self) {
        self.changes.send_modify(Changes::everything);
    }
}
