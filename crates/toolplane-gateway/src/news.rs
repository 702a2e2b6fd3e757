//! What servers tell of their own accord, passed on to the clients whose business it is.

use mcp_wire::method;
use toolplane::core::Update;

use crate::{identity::Identities, list, task_requests::outward, tasks::Tasks, watches::Watches};

/// Passes on what a server tells. It never blocks.
pub(crate) fn pass_on(update: &Update, watches: &Watches, tasks: &Tasks, identities: &Identities) {
    match update {
        Update::Resource(params) => watches.tell(params),
        Update::ClientResource { clients, params } => {
            watches.tell_those(
                |peer| identities.is_in(peer, clients),
                method::RESOURCES_UPDATED,
                Some(params),
            );
        }
        Update::PageVisited { client, params } => {
            watches.tell_client(client, method::ELICITATION_COMPLETE, params);
        }
        // Those of the modern era are looked at for whoever watches them.
        Update::Task { task, state } => {
            if let Some((id, owner)) = tasks.told_of(task) {
                watches.tell_client(&owner, method::TASKS_STATUS, &outward(state, &id));
            }
        }
        Update::ClientLists { clients, changed, .. } => {
            for notification in list::notifications(changed) {
                watches.tell_those(|peer| identities.is_in(peer, clients), notification, None);
            }
        }
        _ => {}
    }
}
