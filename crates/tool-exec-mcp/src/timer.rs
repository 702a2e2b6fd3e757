use std::future::pending;

use tokio::time::{Instant, sleep_until};

/// Sleeps until this instant, or forever without one.
pub(crate) async fn sleep_until_some(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => pending().await,
    }
}
