//! One shared timer for all calls of a connection.
//!
//! A timer for each call would cost more than everything else: setting the next timer of an idle runtime wakes another
//! thread. Calls usually have equal timeouts and end long before them, so the timer that the first call sets serves all
//! later ones, and is reset only when it fires.

use std::{future::pending, sync::Arc};

use tokio::time::{Instant, sleep_until};

use super::shared::Shared;

/// Fails overdue calls until the connection closes.
pub(super) async fn run(shared: Arc<Shared>) {
    tokio::select! {
        () = shared.closed() => {}
        () = watch(&shared) => {}
    }
}

async fn watch(shared: &Shared) {
    loop {
        let next = shared.fail_overdue(Instant::now());
        let timer = async {
            match next {
                Some(next) => sleep_until(next).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = timer => {}
            () = shared.earlier_deadline.notified() => {}
        }
    }
}
