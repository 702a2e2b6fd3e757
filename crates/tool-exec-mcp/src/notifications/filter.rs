use std::{
    collections::{BTreeMap, HashMap},
    sync::atomic::AtomicBool,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};
use tool_core::{ClientGroup, ClientKey};

use crate::connection::PoolKey;

/// The resources of which news are wanted, and whether the server has agreed to them and is asked for nothing else now. They
/// come over the shared connection.
pub(super) type SharedUris = BTreeMap<String, bool>;

/// What is wanted, and who asks for it again.
#[derive(Default)]
pub(crate) struct SharedFilter {
    pub(super) uris: watch::Sender<SharedUris>,
    /// Whether a task asks for them again when the connection is opened anew.
    pub(super) has_resubscriber: AtomicBool,
}

impl SharedFilter {
    /// Whether news of any resource is wanted.
    pub(crate) fn has_any(&self) -> bool {
        !self.uris.borrow().is_empty()
    }

    /// Waits until nobody asks about a resource, and says whether its news come.
    pub(super) async fn settled(&self, uri: &str) -> bool {
        let mut uris = self.uris.subscribe();
        let settled = uris.wait_for(|uris| uris.get(uri) != Some(&false)).await;
        settled.is_ok_and(|uris| uris.contains_key(uri))
    }
}

/// The resources of which single clients want news.
#[derive(Default)]
pub(crate) struct ClientFilters(Mutex<HashMap<PoolKey, BTreeMap<String, Subscription>>>);

/// A resource of which a client wants news.
struct Subscription {
    since: Instant,
    /// Whether a connection of the client's own gives the news. The shared connection gives them otherwise.
    is_dedicated: bool,
}

impl ClientFilters {
    /// Returns `true` if a connection of the client's own gives news of anything.
    pub(crate) fn has_dedicated(&self, client: &PoolKey) -> bool {
        let clients = self.0.lock();
        let wanted = clients.get(client);
        wanted.is_some_and(|wanted| wanted.values().any(|wanted| wanted.is_dedicated))
    }

    /// Notes that a client wants news of a resource.
    pub(super) fn add(&self, client: &PoolKey, uri: &str) {
        let (mut clients, since) = (self.0.lock(), Instant::now());
        let wanted = clients.entry(client.clone()).or_default();
        let new = || Subscription {
            since,
            is_dedicated: false,
        };
        wanted.entry(uri.to_owned()).or_insert_with(new).since = since;
    }

    /// Notes which connection gives the news, if they are still wanted.
    pub(super) fn set_dedicated(&self, client: &PoolKey, uri: &str, is_dedicated: bool) {
        let mut clients = self.0.lock();
        if let Some(wanted) = clients.get_mut(client).and_then(|wanted| wanted.get_mut(uri)) {
            wanted.is_dedicated = is_dedicated;
        }
    }

    pub(super) fn remove(&self, client: &PoolKey, uri: &str) {
        let mut clients = self.0.lock();
        if let Some(wanted) = clients.get_mut(client) {
            wanted.remove(uri);
        }
        clients.retain(|_, wanted| !wanted.is_empty());
    }

    /// Forgets the resources of a client that is gone.
    pub(crate) fn remove_client(&self, key: &ClientKey) {
        self.0.lock().retain(|client, _| client.identity.key != *key);
    }

    /// The resources of which a client wants news.
    pub(super) fn uris_of(&self, client: &PoolKey) -> Vec<String> {
        let clients = self.0.lock();
        let wanted = clients.get(client);
        wanted.map_or_else(Vec::new, |wanted| wanted.keys().cloned().collect())
    }

    /// The resources of which no connection of the client's own gives news any more.
    pub(super) fn take_dedicated(&self, client: &PoolKey) -> Vec<String> {
        let mut clients = self.0.lock();
        let Some(wanted) = clients.get_mut(client) else {
            return Vec::new();
        };
        let lost = wanted.iter_mut().filter(|(_, wanted)| wanted.is_dedicated);
        let lost = lost.map(|(uri, wanted)| {
            wanted.is_dedicated = false;
            uri.clone()
        });
        lost.collect()
    }

    /// Takes out what nobody watches, and returns what the clients' own connections gave news of.
    pub(super) fn take_unwatched(
        &self,
        grace: Duration,
        is_watched: &dyn Fn(&str, &ClientGroup) -> bool,
    ) -> Vec<(PoolKey, String)> {
        let mut own = Vec::new();
        self.0.lock().retain(|client, wanted| {
            let group = client.group();
            let over = wanted.extract_if(.., |uri, wanted| {
                wanted.since.elapsed() >= grace && !is_watched(uri, &group)
            });
            let over = over.filter(|(_, wanted)| wanted.is_dedicated);
            own.extend(over.map(|(uri, _)| (client.clone(), uri)));
            !wanted.is_empty()
        });
        own
    }
}
