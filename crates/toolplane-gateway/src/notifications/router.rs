use std::sync::{Arc, Weak};

use mcp_server::Peer;
use mcp_wire::method;
use toolplane::core::Update;

use super::Notifiers;
use crate::{
    client::ClientIdentities,
    lists::changed_notifications,
    tasks::{TaskStore, outward_task},
};

/// Routes updates that servers send of their own accord to the clients that they concern.
pub(crate) struct Router {
    /// Weak, since the toolplane owns the router and may outlive the gateway.
    notifiers: Weak<Notifiers>,
    tasks: Weak<TaskStore>,
    identities: Arc<ClientIdentities>,
}

impl Router {
    pub(crate) fn new(
        notifiers: &Arc<Notifiers>,
        tasks: &Arc<TaskStore>,
        identities: &Arc<ClientIdentities>,
    ) -> Self {
        Self {
            notifiers: Arc::downgrade(notifiers),
            tasks: Arc::downgrade(tasks),
            identities: Arc::clone(identities),
        }
    }

    /// Sends an update to its clients. Never blocks.
    pub(crate) fn route(&self, update: &Update) {
        let (Some(notifiers), Some(tasks)) = (self.notifiers.upgrade(), self.tasks.upgrade()) else {
            return;
        };
        match update {
            Update::Resource(params) => notifiers.resource_updated(params),
            Update::ClientResource { clients, params } => {
                let is_in = |peer: &Peer| self.identities.is_in(peer, clients);
                notifiers.send_matching(is_in, method::RESOURCES_UPDATED, Some(params));
            }
            Update::PageVisited { client, params } => {
                notifiers.send_to_client(client, method::ELICITATION_COMPLETE, params);
            }
            // Only legacy clients: a task that a modern client watches is polled by a `TaskWatcher`.
            Update::Task { task, state } => {
                if let Some((id, owner)) = tasks.find(task) {
                    notifiers.send_to_client(&owner, method::TASKS_STATUS, &outward_task(state, &id));
                }
            }
            Update::ClientLists { clients, changed, .. } => {
                let is_in = |peer: &Peer| self.identities.is_in(peer, clients);
                for notification in changed_notifications(changed) {
                    notifiers.send_matching(is_in, notification, None);
                }
            }
            _ => {}
        }
    }
}
