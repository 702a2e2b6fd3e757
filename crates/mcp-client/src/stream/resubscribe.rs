use std::{sync::Arc, time::Duration};

use mcp_wire::method;
use tokio::time::sleep;

use super::{
    outbox::{Outbox, Outgoing},
    shared::Shared,
};

/// Opens the subscription again after a pause, unless something else was wanted meanwhile.
pub(super) async fn again(shared: Arc<Shared>, outbox: Arc<Outbox>, pause: Duration) {
    tokio::select! {
        () = sleep(pause) => {}
        () = shared.closed() => return,
    }
    let frame = {
        let mut listening = shared.listening();
        let (None, Some(wanted)) = (&listening.open, listening.wanted.clone()) else {
            return;
        };
        let id = shared.next_id();
        listening.opened(id);
        mcp_wire::request(id, method::SUBSCRIPTIONS_LISTEN, &wanted.into())
    };
    if outbox.push_when_room(Outgoing::line(frame)).await {
        // What has changed since nobody listened is unknown. Whoever reads a list now is behind the subscription.
        shared.incoming.changes.gap();
    }
}
