use std::{
    collections::{BTreeMap, HashMap},
    sync::atomic::AtomicBool,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};
use tool_core::{ClientGroup, ClientKey};

use crate::connection::PoolKey;

/// URIs to which the shared connection is subscribed. The value is `true` once the server has agreed and no request
/// about the URI is in progress.
pub(super) type SharedUris = BTreeMap<String, bool>;

/// Subscription filter of the shared connection.
#[derive(Default)]
pub(crate) struct SharedFilter {
    pub(super) uris: watch::Sender<SharedUris>,
    /// `true` if a task subscribes again when the connection is reopened.
    pub(super) has_resubscriber: AtomicBool,
}

impl SharedFilter {
    /// Returns `true` if there is any subscription.
    pub(crate) fn has_any(&self) -> bool {
        !self.uris.borrow().is_empty()
    }

    /// Waits until no request about the URI is in progress. Returns `true` if the URI is subscribed.
    pub(super) async fn wait_until_settled(&self, uri: &str) -> bool {
        let mut uris = self.uris.subscribe();
        let settled = uris.wait_for(|uris| uris.get(uri) != Some(&false)).await;
        settled.is_ok_and(|uris| uris.contains_key(uri))
    }
}

/// Subscription filters of single clients.
#[derive(Default)]
pub(crate) struct ClientFilters(Mutex<HashMap<PoolKey, BTreeMap<String, Subscription>>>);

/// Subscription of a client to a resource.
struct Subscription {
    since: Instant,
    /// `true` if a dedicated connection of the client serves it, `false` if the shared one does.
    is_dedicated: bool,
}

impl ClientFilters {
    /// Returns `true` if a dedicated connection of the client serves any subscription.
    pub(crate) fn has_dedicated(&self, client: &PoolKey) -> bool {
        let clients = self.0.lock();
        let subscriptions = clients.get(client);
        subscriptions.is_some_and(|subscriptions| {
            subscriptions
                .values()
                .any(|subscription| subscription.is_dedicated)
        })
    }

    /// Adds a subscription of a client, or renews its time.
    pub(super) fn add(&self, client: &PoolKey, uri: &str) {
        let (mut clients, since) = (self.0.lock(), Instant::now());
        let subscriptions = clients.entry(client.clone()).or_default();
        let new = || Subscription {
            since,
            is_dedicated: false,
        };
        subscriptions.entry(uri.to_owned()).or_insert_with(new).since = since;
    }

    /// Sets which connection serves a subscription, unless it was removed meanwhile.
    pub(super) fn set_dedicated(&self, client: &PoolKey, uri: &str, is_dedicated: bool) {
        let mut clients = self.0.lock();
        if let Some(subscription) = clients
            .get_mut(client)
            .and_then(|subscriptions| subscriptions.get_mut(uri))
        {
            subscription.is_dedicated = is_dedicated;
        }
    }

    pub(super) fn remove(&self, client: &PoolKey, uri: &str) {
        let mut clients = self.0.lock();
        if let Some(subscriptions) = clients.get_mut(client) {
            subscriptions.remove(uri);
        }
        clients.retain(|_, subscriptions| !subscriptions.is_empty());
    }

    /// Removes the subscriptions of a client that is gone.
    pub(crate) fn remove_client(&self, key: &ClientKey) {
        self.0.lock().retain(|client, _| client.identity.key != *key);
    }

    /// Returns the URIs that a client subscribes to.
    pub(super) fn uris_of(&self, client: &PoolKey) -> Vec<String> {
        let clients = self.0.lock();
        let subscriptions = clients.get(client);
        subscriptions.map_or_else(Vec::new, |subscriptions| subscriptions.keys().cloned().collect())
    }

    /// Marks the client's subscriptions as served by the shared connection. Returns the URIs that a dedicated one
    /// served.
    pub(super) fn take_dedicated(&self, client: &PoolKey) -> Vec<String> {
        let mut clients = self.0.lock();
        let Some(subscriptions) = clients.get_mut(client) else {
            return Vec::new();
        };
        let lost = subscriptions
            .iter_mut()
            .filter(|(_, subscription)| subscription.is_dedicated);
        let lost = lost.map(|(uri, subscription)| {
            subscription.is_dedicated = false;
            uri.clone()
        });
        lost.collect()
    }

    /// Removes subscriptions that nobody watches. Returns those that dedicated connections served.
    pub(super) fn take_unwatched(
        &self,
        grace: Duration,
        is_watched: &dyn Fn(&str, &ClientGroup) -> bool,
    ) -> Vec<(PoolKey, String)> {
        let mut dedicated = Vec::new();
        self.0.lock().retain(|client, subscriptions| {
            let group = client.group();
            let unwatched = subscriptions.extract_if(.., |uri, subscription| {
                subscription.since.elapsed() >= grace && !is_watched(uri, &group)
            });
            let unwatched = unwatched.filter(|(_, subscription)| subscription.is_dedicated);
            dedicated.extend(unwatched.map(|(uri, _)| (client.clone(), uri)));
            !subscriptions.is_empty()
        });
        dedicated
    }
}
