//! Idle timeout: servers that nobody uses are stopped, and started again when they are needed.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use mcp_client::Connection;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::McpServer;

impl McpServer {
    /// Starts the task that stops the server when it has been unused for its idle timeout.
    pub(crate) fn watch_idle(self: &Arc<Self>) {
        let Some(limit) = self.settings().idle_timeout else {
            return;
        };
        if !self.is_idle_watched.swap(true, Ordering::Relaxed) {
            tokio::spawn(watch(Arc::downgrade(self), self.lifecycle.watch_running(), limit));
        }
    }

    /// Returns the instant since which nobody has used the server, or `None` while somebody does.
    fn unused_since(&self) -> Option<Instant> {
        let connections = self.connections();
        let is_wanted = connections.n_dedicated() > 0 || connections.shared_filter.has_any();
        let shared = connections.existing_shared().filter(|_| !is_wanted)?;
        shared.slots.unused_since()
    }

    /// Takes the connection of an unused server, so that the next call opens another one.
    fn suspend(&self) -> Option<Connection> {
        let shared = self.connections().existing_shared()?;
        self.unused_since()?;
        shared.slots.if_unused(|| shared.upstream.suspend())
    }
}

/// Stops the server whenever it has been unused for `limit`, until the server is dropped.
async fn watch(server: Weak<McpServer>, mut is_running: watch::Receiver<bool>, limit: Duration) {
    // The sender ends with the server.
    while is_running.wait_for(|is_running| *is_running).await.is_ok() {
        let started = Instant::now();
        loop {
            let now = Instant::now();
            let Some(server) = server.upgrade() else { return };
            let unused = server.unused_since().map(|since| since.max(started));
            let until = unused.unwrap_or(now) + limit;
            if until <= now
                && let Some(connection) = server.suspend()
            {
                tracing::info!(server = server.settings().name, "stopping an idle server");
                connection.shutdown().await;
                break;
            }
            drop(server);
            tokio::select! {
                // A server that cannot be stopped just now is checked again after the same time.
                () = sleep_until(if until <= now { now + limit } else { until }) => {}
                ended = is_running.wait_for(|is_running| !is_running) => match ended {
                    Ok(_) => break,
                    Err(_) => return,
                },
            }
        }
    }
}
