use std::{collections::HashMap, sync::Arc, time::Duration};

use mcp_server::Peer;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use toolplane::{
    Toolplane,
    core::{Caller, ClientIdentity, ErrorKind, ToolError},
};

use super::Notifiers;
use crate::client::ClientIdentities;

/// Resources that clients are subscribed to. The server of each has one subscription, as long as any client has one.
#[derive(Debug, Default)]
pub(crate) struct ResourceSubscriptions(Mutex<HashMap<String, Subscription>>);

#[derive(Debug)]
struct Subscription {
    /// Time of the latest request to subscribe.
    requested: Instant,
    caller: Arc<Caller>,
}

/// Maximum number of resources that all clients together are subscribed to.
const MAX_RESOURCES: usize = 4096;
/// Interval of the cleanup. It is periodic because clients leave without a message.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(30);
/// Time for which a resource without subscribers stays subscribed: its client is registered shortly after its request.
const GRACE: Duration = Duration::from_secs(30);

impl ResourceSubscriptions {
    /// Subscribes to a resource at its server, for a caller that may read it and for its client.
    pub(crate) async fn subscribe(
        &self,
        plane: &Toolplane,
        uri: &str,
        caller: &Arc<Caller>,
        client: &ClientIdentity,
    ) -> Result<(), ToolError> {
        let is_new = self.enter(uri, caller)?;
        let subscribed = plane.subscribe_for(uri, caller, client).await;
        if subscribed.is_err() && is_new {
            self.0.lock().remove(uri);
        }
        subscribed
    }

    /// Records a request to subscribe to a resource. Returns `true` if it is the first one.
    fn enter(&self, uri: &str, caller: &Arc<Caller>) -> Result<bool, ToolError> {
        let by_uri = &mut *self.0.lock();
        let is_new = !by_uri.contains_key(uri);
        if is_new && by_uri.len() >= MAX_RESOURCES {
            let message = format!("too many subscriptions: the limit is {MAX_RESOURCES} resources");
            return Err(ToolError::new(ErrorKind::Overloaded, message));
        }
        let requested = Instant::now();
        // Keeps the first caller: it is not known yet whether this one may read the resource.
        let subscription = by_uri.entry(uri.to_owned()).or_insert_with(|| Subscription {
            requested,
            caller: Arc::clone(caller),
        });
        subscription.requested = requested;
        Ok(is_new)
    }

    /// Ends subscriptions that no client has any more, periodically. Never completes.
    pub(crate) async fn run_cleanup(
        &self,
        plane: &Toolplane,
        notifiers: &Notifiers,
        identities: &ClientIdentities,
    ) {
        loop {
            sleep(CLEANUP_INTERVAL).await;
            end_client_subscriptions(plane, notifiers, identities);
            for uri in self.take_unwatched(notifiers) {
                if let Err(error) = plane.unsubscribe(&uri).await {
                    tracing::debug!(uri, %error, "failed to unsubscribe from a resource");
                }
                // A client may have subscribed in the meantime: its subscription at the server was ended with the others.
                let caller = self.0.lock().get(&uri).map(|known| Arc::clone(&known.caller));
                if let Some(caller) = caller {
                    let _ = plane.subscribe(&uri, &caller).await;
                }
            }
        }
    }

    /// Removes and returns the resources without subscribers.
    fn take_unwatched(&self, notifiers: &Notifiers) -> Vec<String> {
        let mut by_uri = self.0.lock();
        if by_uri.is_empty() {
            return Vec::new();
        }
        let mut watched = notifiers.watched_uris();
        watched.sort_unstable();
        let is_unwatched = |uri: &String, subscription: &mut Subscription| {
            subscription.requested.elapsed() >= GRACE && watched.binary_search(uri).is_err()
        };
        by_uri.extract_if(is_unwatched).map(|(uri, _)| uri).collect()
    }
}

/// Ends subscriptions on connections of single clients that are not subscribed any more.
fn end_client_subscriptions(plane: &Toolplane, notifiers: &Notifiers, identities: &ClientIdentities) {
    let mut watchers: HashMap<String, Vec<Peer>> = HashMap::new();
    for (uri, peer) in notifiers.watchers() {
        watchers.entry(uri).or_default().push(peer);
    }
    plane.end_unwatched(GRACE, &|uri, clients| {
        let of_uri = watchers.get(uri);
        of_uri.is_some_and(|peers| peers.iter().any(|peer| identities.is_in(peer, clients)))
    });
}
