use std::{sync::Arc, time::Duration};

use mcp_wire::method;
use tokio::time::sleep;

use super::{
    outbox::{Outbox, Outgoing},
    shared::Shared,
};

/// Opens the subscription again after a pause, unless something else was wanted meanwhile.
pub(super) async fn resubscribe(shared: Arc<Shared>, outbox: Arc<Outbox>, pause: Duration) {
    tokio::select! {
        () = sleep(pause) => {}
        () = shared.closed() => return,
    }
    let frame = {
        let mut subscription = shared.subscription();
        let (None, Some(wanted)) = (&subscription.active, subscription.wanted.clone()) else {
            return;
        };
        let id = shared.next_id();
        subscription.activate(id);
        mcp_wire::request(id, method::SUBSCRIPTIONS_LISTEN, &wanted.into())
    };
    if outbox.push_when_ready(Outgoing::line(frame)).await {
        // What has changed since nobody listened is unknown. Whoever reads a list now is behind the subscription.
        shared.router.notifier.gap();
    }
}
