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
    /// Subscribes a client to a resource on its dedicated connections. Returns `false` if it has none now: the shared
    /// connection then serves the subscription until one is opened.
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
            .subscribe(uri, RequestOptions::with_timeout(REQUEST_TIMEOUT))
            .await;
        done.map_err(|error| request_error(server, error))
    }

    fn open_connections(&self, client: &PoolKey) -> Vec<Connection> {
        let dedicated = self.pool.for_key(client);
        dedicated
            .iter()
            .filter_map(|connection| connection.upstream.ready())
            .collect()
    }

    /// Subscribes a connection that was just opened to the resources of its client.
    pub(crate) async fn resubscribe(&self, client: &PoolKey, connection: &Connection) {
        for uri in self.client_filters.uris_of(client) {
            match self.subscribe_on(connection, &uri).await {
                // Each process of the server has resources of its own, so this one may differ from the previous one's.
                Ok(()) => {
                    self.client_filters.set_dedicated(client, &uri, true);
                    self.notify_maybe_changed(client, &uri);
                }
                Err(error) => {
                    let server = &self.settings.name;
                    tracing::debug!(server, uri, %error, "a dedicated connection cannot subscribe to a resource");
                }
            }
        }
    }

    /// Moves the subscriptions of a dedicated connection that has ended to the shared connection, if it was the
    /// client's last.
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
                    tracing::debug!(uri, %error, "a subscription to a resource ended with a dedicated connection");
                }
                connections.notify_maybe_changed(&client, &uri);
            }
        });
    }

    /// Notifies a client of a resource that may have changed unnoticed.
    fn notify_maybe_changed(&self, client: &PoolKey, uri: &str) {
        let params = RawJson::object().with_members(&[("uri", RawJson::from(uri))]);
        self.notifier.notify(&Update::ClientResource {
            clients: client.group(),
            params: params.expect("an empty object is an object"),
        });
    }

    /// Ends the subscriptions that no client watches.
    pub(crate) fn unsubscribe_unwatched(
        self: &Arc<Self>,
        grace: Duration,
        is_watched: &dyn Fn(&str, &ClientGroup) -> bool,
    ) {
        let unwatched = self.client_filters.take_unwatched(grace, is_watched);
        if unwatched.is_empty() {
            return;
        }
        let connections = self.clone();
        tokio::spawn(async move {
            for (client, uri) in unwatched {
                for connection in connections.open_connections(&client) {
                    let done = connection
                        .unsubscribe(&uri, RequestOptions::with_timeout(REQUEST_TIMEOUT))
                        .await;
                    if let Err(error) = done {
                        tracing::debug!(uri, %error, "a server did not end a subscription that nobody watches");
                    }
                }
            }
        });
    }
}
