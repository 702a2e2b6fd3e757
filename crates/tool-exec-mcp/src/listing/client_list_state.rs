use std::{collections::HashSet, sync::Arc, time::Duration};

use mcp_client::{ChangeCounts, OnStatus, ServerState};
use parking_lot::Mutex;
use tokio::{sync::watch, time::timeout};
use tool_core::Feature;

use super::EntryKey;

/// Lists of a dedicated connection as far as they were read.
pub(crate) struct ClientListState {
    /// State of the connection.
    states: watch::Sender<ServerState>,
    /// Number of announced changes that were followed by a reading of the list. `None` before the first reading.
    read: watch::Sender<Option<ChangeCounts>>,
    entries: Mutex<Option<Arc<HashSet<EntryKey>>>>,
}

/// Maximum time that a request waits for lists that are being read again.
const MAX_REFRESH_WAIT: Duration = Duration::from_secs(2);

impl ClientListState {
    pub(crate) fn new() -> Self {
        Self {
            states: watch::Sender::new(ServerState::NotStarted),
            read: watch::Sender::default(),
            entries: Mutex::default(),
        }
    }

    /// Returns the listener that records the state of the connection.
    pub(crate) fn on_status(&self) -> OnStatus {
        let states = self.states.clone();
        OnStatus::new(move |status| {
            states.send_replace(status.state);
        })
    }

    /// Returns `true` if the connection is known to list this entry.
    pub(crate) fn has(&self, entry: &EntryKey) -> bool {
        let entries = self.entries.lock();
        entries.as_ref().is_some_and(|entries| entries.contains(entry))
    }

    /// Waits until every list that the server has announced to have changed is read again.
    pub(crate) async fn wait_until_refreshed(&self, announced: ChangeCounts) {
        let has_read = |read: &Option<ChangeCounts>| {
            read.is_some_and(|read| {
                read.tools >= announced.tools
                    && read.prompts >= announced.prompts
                    && read.resources >= announced.resources
            })
        };
        let (mut read, mut states) = (self.read.subscribe(), self.states.subscribe());
        let waited = timeout(MAX_REFRESH_WAIT, async {
            tokio::select! {
                _ = read.wait_for(has_read) => {}
                _ = states.wait_for(|state| *state != ServerState::Ready) => {}
            }
        });
        if waited.await.is_err() {
            tracing::debug!("the lists of a dedicated connection were not read in time");
        }
    }

    pub(super) fn set_entries(&self, entries: Option<HashSet<EntryKey>>) {
        let entries = entries.map(Arc::new);
        *self.entries.lock() = entries;
    }

    /// Records that these lists were read after this number of changes.
    pub(super) fn record_read(&self, features: &[Feature], counted: ChangeCounts) {
        self.read.send_modify(|read| {
            let read = read.get_or_insert_default();
            for feature in features {
                match feature {
                    Feature::Tool => read.tools = counted.tools,
                    Feature::Prompt => read.prompts = counted.prompts,
                    _ => read.resources = counted.resources,
                }
            }
        });
    }

    /// Forgets which lists were read, as when the connection has ended.
    pub(super) fn clear_read(&self) {
        self.read.send_replace(None);
    }

    /// Returns a receiver of the state of the connection.
    pub(super) fn watch_state(&self) -> watch::Receiver<ServerState> {
        self.states.subscribe()
    }
}
