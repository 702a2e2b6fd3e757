//! What both transports do alike with messages that a server sends unasked.

use std::{collections::HashMap, sync::Arc};

use mcp_wire::{Id, Notification, integer, method};
use parking_lot::{Mutex, MutexGuard};
use raw_json::RawJson;
use tokio::task::AbortHandle;

use super::ChangeSink;
use crate::{Handlers, connection::Counting};

/// Takes what a server sends that is no answer.
pub(crate) struct Incoming {
    pub(crate) handlers: Handlers,
    pub(crate) changes: ChangeSink,
    pub(crate) counting: Counting,
    /// The requests of the server that are being answered.
    running: Mutex<HashMap<Id, AbortHandle>>,
}

impl Incoming {
    pub(crate) fn new(handlers: Handlers, changes: ChangeSink) -> Arc<Self> {
        Arc::new(Self {
            handlers,
            changes,
            counting: Counting::default(),
            running: Mutex::default(),
        })
    }

    /// Takes a notification that is about no request that is under way.
    pub(crate) fn note(&self, note: Notification) {
        match note.method.as_str() {
            method::TOOLS_LIST_CHANGED => self.changes.tools(),
            method::RESOURCES_LIST_CHANGED => self.changes.resources(),
            method::PROMPTS_LIST_CHANGED => self.changes.prompts(),
            method::CANCELLED => return self.take_back(&note),
            // The subscription is ours, and what it brings is heard of anyway.
            method::SUBSCRIPTIONS_ACKNOWLEDGED => return,
            _ => {
                let is_taken = self.handlers.tell(&note);
                if !self.changes.events.send(note) && !is_taken {
                    self.counting.notifications.add();
                }
                return;
            }
        }
        self.handlers.tell(&note);
        self.changes.events.send(note);
    }

    /// The server no longer wants the answer to one of its requests.
    fn take_back(&self, note: &Notification) {
        let id = note.params.as_ref().and_then(|params| params.get("requestId"));
        let task = id
            .and_then(|id| Id::new(&id))
            .and_then(|id| self.running().remove(&id));
        match task {
            Some(task) => task.abort(),
            None => self.counting.notifications.add(),
        }
    }

    /// Stops answering: the connection is closed.
    pub(crate) fn stop(&self) {
        for (_, task) in self.running().drain() {
            task.abort();
        }
    }

    pub(crate) fn sent(&self, sent: bool) {
        if !sent {
            self.counting.dropped.add();
        }
    }

    pub(crate) fn running(&self) -> MutexGuard<'_, HashMap<Id, AbortHandle>> {
        self.running.lock()
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The id of the request that a progress notification is about: our tokens are our ids.
pub(crate) fn progress_of(notification: &Notification) -> Option<(u64, &RawJson)> {
    if notification.method != method::PROGRESS {
        return None;
    }
    let params = notification.params.as_ref()?;
    Some((integer(&params.get("progressToken")?)?, params))
}
