use tokio::sync::watch;

use crate::events::EventHub;

/// How often a server's lists have changed; a number that went up says that the list should be read again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// Changes of the list of tools.
    pub tools: u64,
    /// Changes of the list of resources, or of templates.
    pub resources: u64,
    /// Changes of the list of prompts.
    pub prompts: u64,
    /// How often the connection was opened anew, by a new session or a new start: the server has forgotten what it was
    /// told before, such as log levels and subscriptions.
    pub openings: u64,
    /// How often there was a time in which nobody heard what the server tells: everything that it tells of may have changed.
    pub gaps: u64,
}

impl Changes {
    fn gap(&mut self) {
        self.gaps += 1;
        self.everything();
    }

    fn everything(&mut self) {
        self.tools += 1;
        self.resources += 1;
        self.prompts += 1;
    }
}

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
