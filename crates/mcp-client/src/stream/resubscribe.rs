use std::{sync::Arc, time::Duration};

use mcp_wire::method;
use tokio::time::sleep;

use super::{
    outbox::{Outbox, Outgoing},
    shared::Shared,
};

/// Reopens the subscription after a pause, unless it was replaced meanwhile.
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
        // Changes in the meantime are unknown. A list that is read from now on is newer than the subscription.
        shared.router.notifier.record_gap();
    }
}
