//! One timer for all calls of a connection.
//!
//! A timer of its own costs a call more than everything else: setting the next timer of an idle runtime wakes
//! another thread. Calls mostly have the same timeout and mostly end long before it, so the timer that the first one
//! has set serves all that follow, and is only set anew when it has fired.

use std::{future::pending, sync::Arc};

use tokio::time::{Instant, sleep_until};

use super::shared::Shared;

/// Fails calls whose time is up, until the connection closes.
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
