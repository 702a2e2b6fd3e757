use std::time::Duration;

use tokio::time::Instant;

use super::{
    Endpoint,
    supervision::Phase,
    upstream::{Inner, Upstream},
};
use crate::{Connection, EraChoice};

/// How long after the era was found out anew it is not doubted again.
const ERA_RECHECK_INTERVAL: Duration = Duration::from_secs(10);

impl Upstream {
    /// Finds out, after an error that [may say so](Error::may_be_other_era) of a request on this connection, whether the
    /// server speaks another era by now. If it does, whoever needs it from now on has a connection of that era, which is
    /// known from then on; the request has not run, and can be made there. Only an endpoint over HTTP changes without its
    /// connection noticing, and only an era that is not chosen by [`ConnectionOptions::era`] is doubted.
    pub async fn detect_era_change(&self, refused: &Connection) -> bool {
        let is_open = matches!(self.0.options.era, EraChoice::Auto | EraChoice::Newest);
        if !is_open || matches!(self.0.endpoint(), Endpoint::Stdio(_) | Endpoint::WebSocket(_)) {
            return false;
        }
        let era = refused.server().era();
        let mut found = self.0.era_found.lock().await;
        // Somebody else may have found out meanwhile.
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
                tracing::debug!(%error, "the era of a server could not be found out anew");
                false
            }
        }
    }
}

impl Inner {
    /// Puts a connection of another era in the place of the present one. Requests under way there are answered there.
    pub(super) fn replace(&self, connection: Connection, generation: u64) -> bool {
        let mut supervision = self.supervision();
        if !supervision.is_current(generation) || !matches!(supervision.phase(), Phase::Ready { .. }) {
            return false;
        }
        let era = connection.server().era();
        tracing::info!(?era, "a server speaks another era of the protocol by now");
        supervision.server = Some(connection.server().clone());
        supervision.era = Some(era);
        supervision.enter(Phase::Ready { connection });
        self.notifier.reopened();
        true
    }
}
