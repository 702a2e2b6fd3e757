use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use mcp_client::{Connection, RequestOptions};
use raw_json::RawJson;
use tool_core::{ClientGroup, ToolError, Update};

use super::shared_subscriptions::{REQUEST_TIMEOUT, check_subscribe_support};
use crate::{
    connection::{Connections, PoolKey},
    errors::request_error,
};

impl Connections {
    /// Asks for news of a resource for a client that may have connections of its own. Returns `false` if the client has none
    /// now: the news are to come over the shared connection then, and are asked for again when one is opened.
    pub(crate) async fn subscribe_for(&self, uri: &str, client: &PoolKey) -> Result<bool, ToolError> {
        let filters = &self.client_filters;
        filters.add(client, uri);
        let open = self.open_connections(client);
        if open.is_empty() {
            return Ok(false);
        }
        let asked = open.iter().map(|connection| self.subscribe_on(connection, uri));
        let mut answers = join_all(asked).await;
        if let Some(refused) = answers.iter().position(Result::is_err)
            && answers.iter().all(Result::is_err)
        {
            filters.remove(client, uri);
            return answers.swap_remove(refused).map(|()| false);
        }
        filters.set_dedicated(client, uri, true);
        Ok(true)
    }

    async fn subscribe_on(&self, connection: &Connection, uri: &str) -> Result<(), ToolError> {
        let server = &self.settings.name;
        check_subscribe_support(connection, server)?;
        let done = connection
            .subscribe(uri, RequestOptions::within(REQUEST_TIMEOUT))
            .await;
        done.map_err(|error| request_error(server, error))
    }

    fn open_connections(&self, client: &PoolKey) -> Vec<Connection> {
        let dedicated = self.pool.of_key(client);
        dedicated
            .iter()
            .filter_map(|connection| connection.upstream.ready())
            .collect()
    }

    /// Asks a connection that was just opened for the news that its client wants.
    pub(crate) async fn resubscribe(&self, client: &PoolKey, connection: &Connection) {
        for uri in self.client_filters.uris_of(client) {
            match self.subscribe_on(connection, &uri).await {
                // The resource of this process is another than that of the connection before.
                Ok(()) => {
                    self.client_filters.set_dedicated(client, &uri, true);
                    self.notify_maybe_changed(client, &uri);
                }
                Err(error) => {
                    let server = &self.settings.name;
                    tracing::debug!(server, uri, %error, "a client's own connection has no news of a resource");
                }
            }
        }
    }

    /// Has the shared connection give the news that came from a connection which has ended, if it was the client's last.
    pub(crate) fn dedicated_connection_ended(self: &Arc<Self>, client: &PoolKey) {
        if self.is_stopped() || !self.open_connections(client).is_empty() {
            return;
        }
        let lost = self.client_filters.take_dedicated(client);
        if lost.is_empty() {
            return;
        }
        let (connections, client) = (self.clone(), client.clone());
        tokio::spawn(async move {
            for uri in lost {
                if let Err(error) = connections.subscribe(&uri).await {
                    tracing::debug!(uri, %error, "the news of a resource ended with a client's own connection");
                }
                connections.notify_maybe_changed(&client, &uri);
            }
        });
    }

    /// Tells a client of a resource that may have changed while nobody heard of it.
    fn notify_maybe_changed(&self, client: &PoolKey, uri: &str) {
        let params = RawJson::object().with_members(&[("uri", RawJson::from(uri))]);
        self.notifier.notify(&Update::ClientResource {
            clients: client.group(),
            params: params.expect("an empty object is an object"),
        });
    }

    /// Ends the news that no client watches which they are for.
    pub(crate) fn unsubscribe_unwatched(
        self: &Arc<Self>,
        grace: Duration,
        is_watched: &dyn Fn(&str, &ClientGroup) -> bool,
    ) {
        let over = self.client_filters.take_unwatched(grace, is_watched);
        if over.is_empty() {
            return;
        }
        let connections = self.clone();
        tokio::spawn(async move {
            for (client, uri) in over {
                for connection in connections.open_connections(&client) {
                    let done = connection
                        .unsubscribe(&uri, RequestOptions::within(REQUEST_TIMEOUT))
                        .await;
                    if let Err(error) = done {
                        tracing::debug!(uri, %error, "a server still tells of a resource that nobody watches");
                    }
                }
            }
        });
    }
}
