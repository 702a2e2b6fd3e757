use mcp_server::{Notifier, Peer};
use mcp_wire::method;
use parking_lot::Mutex;
use raw_json::RawJson;
use toolplane::core::ClientKey;

use crate::client::connection_of;

/// Notifiers of all transports that serve clients now. What is sent here reaches the clients of each.
#[derive(Debug, Default)]
pub(crate) struct Notifiers(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Attached notifiers, by number.
    attached: Vec<(u64, Notifier)>,
    last: u64,
}

impl Notifiers {
    /// Attaches a notifier until the guard is dropped.
    pub(crate) fn attach(&self, notifier: &Notifier) -> Attached<'_> {
        let mut state = self.0.lock();
        state.last += 1;
        let number = state.last;
        state.attached.push((number, notifier.clone()));
        Attached {
            notifiers: self,
            number,
        }
    }

    /// Notifies the clients that subscribed to a resource of its change.
    pub(crate) fn resource_updated(&self, params: &RawJson) {
        for (_, notifier) in self.attached() {
            notifier.send(method::RESOURCES_UPDATED, Some(params));
        }
    }

    /// Notifies the clients that subscribed to a task of its state.
    pub(crate) fn task_changed(&self, state: &RawJson) {
        for (_, notifier) in self.attached() {
            notifier.send(method::TASKS_CHANGED, Some(state));
        }
    }

    /// Sends a notification to a single legacy client. Modern clients receive only what they subscribed to.
    pub(crate) fn send_to_client(&self, client: &ClientKey, method: &str, params: &RawJson) {
        let Some(connection) = connection_of(client) else {
            return;
        };
        for (_, notifier) in self.attached() {
            notifier.send_to(connection, method, Some(params));
        }
    }

    /// Sends a notification to the clients that match and listen to its kind.
    pub(crate) fn send_matching(
        &self,
        matches: impl Fn(&Peer) -> bool + Copy,
        method: &str,
        params: Option<&RawJson>,
    ) {
        for (_, notifier) in self.attached() {
            notifier.send_where(matches, method, params);
        }
    }

    /// Returns `true` if any client is subscribed to a task.
    pub(crate) fn is_task_watched(&self, id: &str) -> bool {
        let mut attached = self.attached().into_iter();
        attached.any(|(_, notifier)| notifier.has_task_subscriber(id))
    }

    /// Returns the URIs of the resources that clients are subscribed to, in no order and with duplicates.
    pub(super) fn watched_uris(&self) -> Vec<String> {
        let attached = self.attached().into_iter();
        attached
            .flat_map(|(_, notifier)| notifier.subscribed_uris())
            .collect()
    }

    /// Returns the subscriptions to resources as pairs of a URI and a client.
    pub(super) fn watchers(&self) -> Vec<(String, Peer)> {
        let attached = self.attached().into_iter();
        attached
            .flat_map(|(_, notifier)| notifier.subscribers())
            .collect()
    }

    /// Returns copies of the notifiers, so that sending does not hold the lock.
    fn attached(&self) -> Vec<(u64, Notifier)> {
        self.0.lock().attached.clone()
    }
}

/// Guard of an attached notifier. Detaches it when dropped.
pub(crate) struct Attached<'a> {
    notifiers: &'a Notifiers,
    number: u64,
}

impl Drop for Attached<'_> {
    fn drop(&mut self) {
        let mut state = self.notifiers.0.lock();
        state.attached.retain(|(number, _)| *number != self.number);
    }
}
