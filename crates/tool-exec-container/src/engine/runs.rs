use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Semaphore, SemaphorePermit, watch},
    time::timeout,
};

/// Maximum number of containers that are removed at the same time.
const MAX_REMOVALS: usize = 16;
/// Time that containers get to be removed when the gateway stops.
const FAREWELL: Duration = Duration::from_secs(10);

/// Containers that run or are being removed.
pub(crate) struct Runs {
    n_running: watch::Sender<usize>,
    is_stopping: watch::Sender<bool>,
    removals: Semaphore,
}

/// One of them, until it is dropped.
pub(super) struct Running(Arc<Runs>);

impl Runs {
    pub(crate) fn new() -> Self {
        Self {
            n_running: watch::Sender::new(0),
            is_stopping: watch::Sender::new(false),
            removals: Semaphore::new(MAX_REMOVALS),
        }
    }

    pub(super) fn begin(self: &Arc<Self>) -> Running {
        self.n_running.send_modify(|n| *n += 1);
        Running(self.clone())
    }

    /// Waits until the gateway stops.
    pub(super) async fn stopping(&self) {
        let mut stopping = self.is_stopping.subscribe();
        let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
    }

    /// Waits until a container may be removed.
    pub(super) async fn removal(&self) -> Option<SemaphorePermit<'_>> {
        self.removals.acquire().await.ok()
    }

    /// Kills all containers, and waits until they are removed. Calls that come later are stopped as well.
    pub(crate) async fn stop(&self) {
        self.is_stopping.send_replace(true);
        let mut running = self.n_running.subscribe();
        let _ = timeout(FAREWELL, running.wait_for(|n| *n == 0)).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.n_running.send_modify(|n| *n -= 1);
    }
}
