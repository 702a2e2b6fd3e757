use std::time::Duration;

use tokio::time::Instant;

use super::{
    supervision::Phase,
    upstream::{Inner, Upstream},
};
use crate::{Connection, EraChoice};

/// Minimum interval between two detections of the era.
const ERA_RECHECK_INTERVAL: Duration = Duration::from_secs(10);

impl Upstream {
    /// Detects whether the server speaks another era by now, after a request on `refused` failed with an error that
    /// [may indicate so](crate::ClientError::may_indicate_other_era). If it does, all later callers get a connection of
    /// the new era, which is remembered; the refused request has not run and can be repeated there.
    ///
    /// Only HTTP endpoints can change their era without closing the connection, and only an era that
    /// [`ConnectionOptions::era`](crate::ConnectionOptions::era) leaves open is checked.
    ///
    /// # Cancellation
    /// Dropping the future ends the detection without a result. The next one is possible after 10 seconds.
    pub async fn detect_era_change(&self, refused: &Connection) -> bool {
        let is_open = matches!(self.0.options.era, EraChoice::Auto | EraChoice::Newest);
        if !is_open || !self.0.endpoint().can_change_era() {
            return false;
        }
        let era = refused.server().era();
        let mut found = self.0.era_found.lock().await;
        // Another caller may have detected the change meanwhile.
        if let Some(now) = self.ready()
            && now.server().era() != era
        {
            return true;
        }
        if found.is_some_and(|found| found.elapsed() < ERA_RECHECK_INTERVAL) {
            return false;
        }
        *found = Some(Instant::now());
        let generation = self.0.supervision().generation;
        match self.0.open(None).await {
            Ok(connection) if connection.server().era() != era => self.0.replace(connection, generation),
            Ok(connection) => {
                connection.shutdown().await;
                false
            }
            Err(error) => {
                tracing::debug!(%error, "cannot detect the era of the server");
                false
            }
        }
    }
}

impl Inner {
    /// Replaces the current connection by one of another era. Requests in progress finish on the old one.
    pub(super) fn replace(&self, connection: Connection, generation: u64) -> bool {
        let mut supervision = self.supervision();
        if !supervision.is_current(generation) || !matches!(supervision.phase(), Phase::Ready { .. }) {
            return false;
        }
        let era = connection.server().era();
        tracing::info!(?era, "the server has changed its protocol era");
        supervision.server = Some(connection.server().clone());
        supervision.era = Some(era);
        supervision.enter(Phase::Ready { connection });
        self.notifier.record_reopening();
        true
    }
}
