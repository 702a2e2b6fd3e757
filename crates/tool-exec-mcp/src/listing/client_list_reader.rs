use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use mcp_client::{ChangeCounts, ListResult, ServerState};
use tokio::{join, time::Instant};
use tool_core::{Feature, hide_credentials};

use super::{
    ClientLists, Freshness, RefreshSchedule,
    entries::{describe, entry_keys},
    read_lists::{changed_lists, cut_warning, read_lists},
};
use crate::{
    ServerSettings,
    connection::{Connections, PoolKey, ServerConnection},
    timer::sleep_until_some,
};

/// Reads the lists of a dedicated connection whenever it is opened and whenever the server announces a change.
pub(crate) struct ClientListReader {
    pub(crate) settings: Arc<ServerSettings>,
    pub(crate) lists: Arc<ClientLists>,
    pub(crate) connections: Weak<Connections>,
    pub(crate) client: PoolKey,
    /// Weak, so that the reader keeps no connection open.
    pub(crate) server_connection: Weak<ServerConnection>,
    /// Number of the connection, in the order of opening.
    pub(crate) number: u64,
}

impl ClientListReader {
    /// Reads lists until the connection is closed for good.
    pub(crate) async fn run(self) {
        let Some(mut states) = self
            .server_connection
            .upgrade()
            .map(|server_connection| server_connection.lists.watch_state())
        else {
            return;
        };
        self.lists.announce(&self.client);
        let is_settled = |state: &ServerState| matches!(state, ServerState::Ready | ServerState::Stopped);
        while let Ok(ServerState::Ready) = states.wait_for(is_settled).await.map(|state| *state) {
            tokio::select! {
                ((), ()) = async { join!(self.follow(), self.resubscribe()) } => {}
                _ = states.wait_for(|state| *state != ServerState::Ready) => {}
            }
            self.remove_lists();
        }
        self.remove_lists();
    }

    /// Removes the lists of a connection that has ended. They are read again when it is reopened.
    fn remove_lists(&self) {
        if let Some(server_connection) = self.server_connection.upgrade() {
            server_connection.lists.set_entries(None);
            server_connection.lists.clear_read();
        }
        self.lists.remove_connection(&self.client, self.number);
        if let Some(connections) = self.connections.upgrade() {
            connections.dedicated_connection_ended(&self.client);
        }
    }

    /// Subscribes to the client's resources, now and whenever notifications may have been missed.
    async fn resubscribe(&self) {
        let Some(mut changes) = self
            .server_connection
            .upgrade()
            .map(|server_connection| server_connection.upstream.changes())
        else {
            return;
        };
        loop {
            let gaps = changes.borrow_and_update().gaps;
            let connection = self
                .server_connection
                .upgrade()
                .and_then(|server_connection| server_connection.upstream.ready());
            if let (Some(connection), Some(connections)) = (connection, self.connections.upgrade()) {
                connections.resubscribe(&self.client, &connection).await;
            }
            if changes.wait_for(|now| now.gaps != gaps).await.is_err() {
                return;
            }
        }
    }

    /// Reads the lists of an open connection and follows their changes. Ends only with the connection.
    async fn follow(&self) {
        let Some(mut changes) = self
            .server_connection
            .upgrade()
            .map(|server_connection| server_connection.upstream.changes())
        else {
            return;
        };
        let mut seen = *changes.borrow_and_update();
        let (mut schedule, mut freshness) = (RefreshSchedule::unread(), Freshness::default());
        let unread = self.read(Feature::ALL, seen, &mut freshness).await;
        for feature in unread {
            schedule.mark_failed(feature, Instant::now());
        }
        loop {
            let now = *changes.borrow_and_update();
            for feature in changed_lists(seen, now) {
                schedule.mark_changed(feature, Instant::now());
            }
            seen = now;
            tokio::select! {
                changed = changes.changed() => if changed.is_err() {
                    return;
                },
                () = sleep_until_some([schedule.next(), freshness.next()].into_iter().flatten().min()) => {
                    let mut due = schedule.take_due(Instant::now());
                    for feature in freshness.take_due(Instant::now()) {
                        if !due.contains(&feature) {
                            due.push(feature);
                        }
                    }
                    let counted = *changes.borrow();
                    let unread = self.read(&due, counted, &mut freshness).await;
                    schedule.record_attempt(&due, &unread, Instant::now());
                }
            }
        }
    }

    /// Reads these lists and returns those that could not be read. `counted` is the number of changes announced before.
    async fn read(
        &self,
        features: &[Feature],
        counted: ChangeCounts,
        freshness: &mut Freshness,
    ) -> Vec<Feature> {
        let connection = self
            .server_connection
            .upgrade()
            .and_then(|server_connection| server_connection.upstream.ready());
        let Some(connection) = connection else {
            return features.to_vec();
        };
        let (mut lists, mut unread) = (HashMap::new(), Vec::new());
        let (settings, server) = (&*self.settings, connection.server());
        let limit = settings.start_timeout;
        let limits = &settings.list_limits;
        for (feature, list) in read_lists(&connection, features, limits, |_| limit).await {
            match list {
                Ok(ListResult {
                    entries,
                    ttl,
                    truncation: cut,
                    ..
                }) => {
                    freshness.record_read(server, feature, ttl, settings.refresh_interval);
                    let mut described = describe(settings, server, feature, &entries);
                    described
                        .warnings
                        .extend(cut.map(|cut| cut_warning(feature, cut, limits)));
                    lists.insert(feature, described);
                }
                Err(reason) => {
                    let (server, what) = (&settings.name, feature.as_str());
                    let reason = hide_credentials(&reason);
                    tracing::warn!(
                        server,
                        "the list of {what}s of a dedicated connection cannot be read: {reason}"
                    );
                    unread.push(feature);
                }
            }
        }
        let read = self.lists.publish(&self.client, self.number, lists);
        if let Some(server_connection) = self.server_connection.upgrade() {
            server_connection.lists.set_entries(Some(entry_keys(&read)));
            server_connection.lists.record_read(features, counted);
            // Calls may wait for a connection that is known to list what they call.
            server_connection.slots.notify_free();
        }
        unread
    }
}
