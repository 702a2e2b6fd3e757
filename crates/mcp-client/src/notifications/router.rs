//! Router of the messages that answer no request, for both transports.

use std::{collections::HashMap, sync::Arc};

use mcp_wire::{Id, Notification, integer_id, method};
use parking_lot::{Mutex, MutexGuard};
use raw_json::RawJson;
use tokio::task::AbortHandle;

use super::Notifier;
use crate::{Handlers, connection::StatCounters};

/// Routes requests of the server to handlers, and notifications to subscribers.
pub(crate) struct MessageRouter {
    pub(crate) handlers: Handlers,
    pub(crate) notifier: Notifier,
    pub(crate) stats: StatCounters,
    /// Requests of the server that are being handled.
    running: Mutex<HashMap<Id, AbortHandle>>,
}

impl MessageRouter {
    pub(crate) fn new(handlers: Handlers, notifier: Notifier) -> Arc<Self> {
        Arc::new(Self {
            handlers,
            notifier,
            stats: StatCounters::default(),
            running: Mutex::default(),
        })
    }

    /// Routes a notification that belongs to no request in progress.
    pub(crate) fn notification(&self, note: Notification) {
        match note.method.as_str() {
            method::TOOLS_LIST_CHANGED => self.notifier.tools_changed(),
            method::RESOURCES_LIST_CHANGED => self.notifier.resources_changed(),
            method::PROMPTS_LIST_CHANGED => self.notifier.prompts_changed(),
            method::CANCELLED => return self.cancel_request(&note),
            // The acknowledged subscription is our own, and its changes are received anyway.
            method::SUBSCRIPTIONS_ACKNOWLEDGED => return,
            _ => {
                let is_taken = self.handlers.notify(&note);
                if !self.notifier.events.send(note) && !is_taken {
                    self.stats.notifications.add();
                }
                return;
            }
        }
        self.handlers.notify(&note);
        self.notifier.events.send(note);
    }

    /// Cancels a request of the server that is being handled.
    fn cancel_request(&self, note: &Notification) {
        let id = note.params.as_ref().and_then(|params| params.get("requestId"));
        let task = id
            .and_then(|id| Id::new(&id))
            .and_then(|id| self.running().remove(&id));
        match task {
            Some(task) => task.abort(),
            None => self.stats.notifications.add(),
        }
    }

    /// Aborts all handlers: the connection is closed.
    pub(crate) fn stop(&self) {
        for (_, task) in self.running().drain() {
            task.abort();
        }
    }

    /// Counts a frame as dropped unless it was sent.
    pub(crate) fn count_dropped(&self, sent: bool) {
        if !sent {
            self.stats.dropped.add();
        }
    }

    pub(crate) fn running(&self) -> MutexGuard<'_, HashMap<Id, AbortHandle>> {
        self.running.lock()
    }
}

impl Drop for MessageRouter {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Id of the request that a progress notification belongs to: our progress tokens are our request ids.
pub(crate) fn progress_target(notification: &Notification) -> Option<(u64, &RawJson)> {
    if notification.method != method::PROGRESS {
        return None;
    }
    let params = notification.params.as_ref()?;
    Some((integer_id(&params.get("progressToken")?)?, params))
}
