//! News of resources for single clients, which come from the connections that serve these clients.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use mcp_client::{Connection, RequestOptions};
use parking_lot::Mutex;
use raw_json::RawJson;
use tokio::time::Instant;
use tool_core::{ClientGroup, ClientKey, ToolError, Update};

use crate::{
    connections::Connections,
    fault::request_error,
    pool::Client,
    subscriptions::{LIMIT, agrees_to_subscribe},
};

/// The resources of which single clients want news.
#[derive(Default)]
pub(crate) struct OwnSubscriptions(Mutex<HashMap<Client, BTreeMap<String, Wanted>>>);

/// A resource of which a client wants news.
struct Wanted {
    since: Instant,
    /// Whether a connection of the client's own gives the news. The shared connection gives them otherwise.
    is_own: bool,
}

impl OwnSubscriptions {
    /// Returns `true` if a connection of the client's own gives news of anything.
    pub(crate) fn serves(&self, client: &Client) -> bool {
        let clients = self.0.lock();
        let wanted = clients.get(client);
        wanted.is_some_and(|wanted| wanted.values().any(|wanted| wanted.is_own))
    }

    /// Notes that a client wants news of a resource.
    fn note(&self, client: &Client, uri: &str) {
        let (mut clients, since) = (self.0.lock(), Instant::now());
        let wanted = clients.entry(client.clone()).or_default();
        let new = || Wanted { since, is_own: false };
        wanted.entry(uri.to_owned()).or_insert_with(new).since = since;
    }

    /// Notes which connection gives the news, if they are still wanted.
    fn set_own(&self, client: &Client, uri: &str, is_own: bool) {
        let mut clients = self.0.lock();
        if let Some(wanted) = clients.get_mut(client).and_then(|wanted| wanted.get_mut(uri)) {
            wanted.is_own = is_own;
        }
    }

    fn remove(&self, client: &Client, uri: &str) {
        let mut clients = self.0.lock();
        if let Some(wanted) = clients.get_mut(client) {
            wanted.remove(uri);
        }
        clients.retain(|_, wanted| !wanted.is_empty());
    }

    /// Forgets the resources of a client that is gone.
    pub(crate) fn forget(&self, key: &ClientKey) {
        self.0.lock().retain(|client, _| client.identity.key != *key);
    }

    /// The resources of which a client wants news.
    fn wanted_by(&self, client: &Client) -> Vec<String> {
        let clients = self.0.lock();
        let wanted = clients.get(client);
        wanted.map_or_else(Vec::new, |wanted| wanted.keys().cloned().collect())
    }

    /// The resources of which no connection of the client's own gives news any more.
    fn lose(&self, client: &Client) -> Vec<String> {
        let mut clients = self.0.lock();
        let Some(wanted) = clients.get_mut(client) else {
            return Vec::new();
        };
        let lost = wanted.iter_mut().filter(|(_, wanted)| wanted.is_own);
        let lost = lost.map(|(uri, wanted)| {
            wanted.is_own = false;
            uri.clone()
        });
        lost.collect()
    }

    /// Takes out what nobody watches, and returns what the clients' own connections gave news of.
    fn take_unwatched(
        &self,
        grace: Duration,
        is_watched: &dyn Fn(&str, &ClientGroup) -> bool,
    ) -> Vec<(Client, String)> {
        let mut own = Vec::new();
        self.0.lock().retain(|client, wanted| {
            let group = client.group();
            let over = wanted.extract_if(.., |uri, wanted| {
                wanted.since.elapsed() >= grace && !is_watched(uri, &group)
            });
            let over = over.filter(|(_, wanted)| wanted.is_own);
            own.extend(over.map(|(uri, _)| (client.clone(), uri)));
            !wanted.is_empty()
        });
        own
    }
}

impl Connections {
    /// Asks for news of a resource for a client that may have connections of its own. Returns `false` if the client has none
    /// now: the news are to come over the shared connection then, and are asked for again when one is opened.
    pub(crate) async fn subscribe_for(&self, uri: &str, client: &Client) -> Result<bool, ToolError> {
        let wanted = &self.own_subscriptions;
        wanted.note(client, uri);
        let open = self.open_connections(client);
        if open.is_empty() {
            return Ok(false);
        }
        let asked = open.iter().map(|connection| self.ask_for_news(connection, uri));
        let mut answers = join_all(asked).await;
        if let Some(refused) = answers.iter().position(Result::is_err)
            && answers.iter().all(Result::is_err)
        {
            wanted.remove(client, uri);
            return answers.swap_remove(refused).map(|()| false);
        }
        wanted.set_own(client, uri, true);
        Ok(true)
    }

    async fn ask_for_news(&self, connection: &Connection, uri: &str) -> Result<(), ToolError> {
        let server = &self.settings.name;
        agrees_to_subscribe(connection, server)?;
        let done = connection.subscribe(uri, RequestOptions::with_timeout(LIMIT)).await;
        done.map_err(|error| request_error(server, error))
    }

    fn open_connections(&self, client: &Client) -> Vec<Connection> {
        let lines = self.own.serving(client);
        lines.iter().filter_map(|line| line.upstream.ready()).collect()
    }

    /// Asks a connection that was just opened for the news that its client wants.
    pub(crate) async fn resume_news(&self, client: &Client, connection: &Connection) {
        for uri in self.own_subscriptions.wanted_by(client) {
            match self.ask_for_news(connection, &uri).await {
                // The resource of this process is another than that of the connection before.
                Ok(()) => {
                    self.own_subscriptions.set_own(client, &uri, true);
                    self.tell_changed(client, &uri);
                }
                Err(error) => {
                    let server = &self.settings.name;
                    tracing::debug!(server, uri, %error, "a client's own connection has no news of a resource");
                }
            }
        }
    }

    /// Has the shared connection give the news that came from a connection which has ended, if it was the client's last.
    pub(crate) fn own_connection_ended(self: &Arc<Self>, client: &Client) {
        if self.is_stopped() || !self.open_connections(client).is_empty() {
            return;
        }
        let lost = self.own_subscriptions.lose(client);
        if lost.is_empty() {
            return;
        }
        let (connections, client) = (self.clone(), client.clone());
        tokio::spawn(async move {
            for uri in lost {
                if let Err(error) = connections.subscribe(&uri).await {
                    tracing::debug!(uri, %error, "the news of a resource ended with a client's own connection");
                }
                connections.tell_changed(&client, &uri);
            }
        });
    }

    /// Tells a client of a resource that may have changed while nobody heard of it.
    fn tell_changed(&self, client: &Client, uri: &str) {
        let params = RawJson::object().with_members(&[("uri", RawJson::from(uri))]);
        self.updates.tell(&Update::ClientResource {
            clients: client.group(),
            params: params.expect("an empty object is an object"),
        });
    }

    /// Ends the news that no client watches which they are for.
    pub(crate) fn end_unwatched(
        self: &Arc<Self>,
        grace: Duration,
        is_watched: &dyn Fn(&str, &ClientGroup) -> bool,
    ) {
        let over = self.own_subscriptions.take_unwatched(grace, is_watched);
        if over.is_empty() {
            return;
        }
        let connections = self.clone();
        tokio::spawn(async move {
            for (client, uri) in over {
                for connection in connections.open_connections(&client) {
                    let done = connection.unsubscribe(&uri, RequestOptions::with_timeout(LIMIT)).await;
                    if let Err(error) = done {
                        tracing::debug!(uri, %error, "a server still tells of a resource that nobody watches");
                    }
                }
            }
        });
    }
}
