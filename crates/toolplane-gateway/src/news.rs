//! What servers tell of their own accord, passed on to the clients whose business it is.

use mcp_wire::method;
use toolplane::core::Update;

use crate::{task_requests::outward, tasks::Tasks, watches::Watches};

/// Passes on what a server tells. It never blocks.
pub(crate) fn pass_on(update: &Update, watches: &Watches, tasks: &Tasks) {
    match update {
        Update::Resource(params) => watches.tell(params),
        Update::PageVisited { client, params } => {
            watches.tell_client(client, method::ELICITATION_COMPLETE, params);
        }
        // Those of the modern era are looked at for whoever watches them.
        Update::Task { task, state } => {
            if let Some((id, owner)) = tasks.told_of(task) {
                watches.tell_client(&owner, method::TASKS_STATUS, &outward(state, &id));
            }
        }
        _ => {}
    }
}
