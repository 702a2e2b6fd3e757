use std::{
    collections::BTreeSet,
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use mcp_client::{ChangeCounts, ClientErrorKind as Fault, Connection, RequestOptions, ServerState};
use raw_json::RawJson;
use tokio::{sync::watch, time::sleep};
use tool_core::{ErrorKind, ToolError, Update};

use super::filter::SharedUris;
use crate::{
    connection::{ConnectError, Connections},
    errors::request_error,
};

/// Time limit of a request about a subscription.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause before the server is asked again for subscriptions that it refused after a restart.
const RETRY_PAUSE: Duration = Duration::from_secs(30);

/// Request in progress about a URI. Dropping it removes the URI from the filter, unless the server has agreed.
struct PendingRequest<'a> {
    uris: &'a watch::Sender<SharedUris>,
    uri: &'a str,
    is_agreed: bool,
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        self.uris.send_modify(|uris| {
            uris.remove(self.uri);
            if self.is_agreed {
                uris.insert(self.uri.to_owned(), true);
            }
        });
    }
}

impl Connections {
    /// Subscribes the shared connection to a resource until [`Connections::unsubscribe`], also across restarts of the
    /// server. Subscribing twice changes nothing.
    pub(crate) async fn subscribe(self: &Arc<Self>, uri: &str) -> Result<(), ToolError> {
        let server = &self.settings.name;
        let connection = match self.open_shared().await {
            Ok(connection) => connection,
            Err(error) => return Err(error.into_request_error(server)),
        };
        check_subscribe_support(&connection, server)?;
        let uris = &self.shared_filter.uris;
        // Before the request: a server that restarts meanwhile is asked for it as well.
        let note = |uris: &mut SharedUris| match uris.contains_key(uri) {
            true => false,
            false => uris.insert(uri.to_owned(), false).is_none(),
        };
        while !uris.send_if_modified(note) {
            if self.shared_filter.wait_until_settled(uri).await {
                return Ok(());
            }
        }
        let mut pending = PendingRequest {
            uris,
            uri,
            is_agreed: false,
        };
        let done = connection
            .subscribe(uri, RequestOptions::with_timeout(REQUEST_TIMEOUT))
            .await;
        pending.is_agreed = done.is_ok();
        drop(pending);
        done.map_err(|error| request_error(server, error))?;
        if !self.shared_filter.has_resubscriber.swap(true, Ordering::SeqCst)
            && let Some(upstream) = self.shared_upstream()
        {
            let resubscriber = Resubscriber {
                changes: upstream.changes(),
                uris: uris.subscribe(),
                connections: Arc::downgrade(self),
            };
            tokio::spawn(resubscriber.run(connection));
        }
        Ok(())
    }

    /// Ends [`Connections::subscribe`]. A server that does not run is not started for it.
    pub(crate) async fn unsubscribe(&self, uri: &str) -> Result<(), ToolError> {
        let uris = &self.shared_filter.uris;
        let is_known = self.shared_filter.wait_until_settled(uri).await;
        // A concurrent subscription waits until this request is over, since the server may process two requests in any
        // order.
        let claim = |uris: &mut SharedUris| uris.get_mut(uri).is_some_and(std::mem::take);
        if !is_known || !uris.send_if_modified(claim) {
            return Ok(());
        }
        let _pending = PendingRequest {
            uris,
            uri,
            is_agreed: false,
        };
        let runs = self
            .shared_upstream()
            .is_some_and(|upstream| upstream.status().state == ServerState::Ready);
        if !runs {
            return Ok(());
        }
        let server = &self.settings.name;
        let connection = self
            .open_shared()
            .await
            .map_err(|error| error.into_request_error(server))?;
        let done = connection
            .unsubscribe(uri, RequestOptions::with_timeout(REQUEST_TIMEOUT))
            .await;
        done.map_err(|error| request_error(server, error))
    }
}

/// Fails if the server does not declare the capability `resources.subscribe`.
pub(super) fn check_subscribe_support(connection: &Connection, server: &str) -> Result<(), ToolError> {
    let resources = connection.server().capabilities.get("resources");
    let tells = resources.and_then(|resources| resources.get("subscribe"));
    if tells.is_some_and(|tells| tells.as_str() == "true") {
        return Ok(());
    }
    let message = format!("the server `{server}` does not offer subscriptions to resources");
    Err(ToolError::new(ErrorKind::UpstreamError, message))
}

/// Task that subscribes again whenever the server may have lost its subscriptions. It ends with the server.
struct Resubscriber {
    changes: watch::Receiver<ChangeCounts>,
    uris: watch::Receiver<SharedUris>,
    connections: Weak<Connections>,
}

impl Resubscriber {
    async fn run(mut self, mut connection: Connection) {
        let mut seen = *self.changes.borrow_and_update();
        // URIs that the server has refused since its restart.
        let mut refused = BTreeSet::new();
        loop {
            let changed = tokio::select! {
                _ = connection.closed() => None,
                // The sender ends with the server.
                changes = self.changes.wait_for(|now| (now.openings, now.gaps) != (seen.openings, seen.gaps)) => {
                    changes.ok().map(|changes| *changes)
                }
                () = sleep(RETRY_PAUSE), if !refused.is_empty() => None,
                () = gone(&mut self.uris) => return,
            };
            if let Some(changed) = changed
                && changed.openings == seen.openings
            {
                seen = changed;
                let uris = self.uris.borrow().keys().cloned().collect();
                self.notify_maybe_changed(uris);
                continue;
            }
            let Ok(uris) = self
                .uris
                .wait_for(|uris| !uris.is_empty())
                .await
                .map(|uris| uris.keys().cloned().collect::<BTreeSet<_>>())
            else {
                return;
            };
            let Some(connections) = self.connections.upgrade() else {
                return;
            };
            let opened = connections.open_shared().await;
            let is_over = connections.is_stopped();
            drop(connections);
            if is_over {
                return;
            }
            connection = match opened {
                Ok(opened) => opened,
                Err(error) => {
                    tokio::select! {
                        () = sleep(pause(&error)) => continue,
                        () = gone(&mut self.uris) => return,
                    }
                }
            };
            let before = std::mem::replace(&mut seen, *self.changes.borrow_and_update());
            let is_same = before.openings == seen.openings && !refused.is_empty();
            let wanted: Vec<_> = match is_same {
                true => uris.intersection(&refused).cloned().collect(),
                false => uris.into_iter().collect(),
            };
            refused.clear();
            for uri in &wanted {
                let done = connection
                    .subscribe(uri, RequestOptions::with_timeout(REQUEST_TIMEOUT))
                    .await;
                if let Err(error) = done {
                    tracing::warn!(uri, %error, "a restarted server refused a subscription to a resource");
                    refused.insert(uri.clone());
                }
            }
            // Changes since the server lost its subscriptions are unknown.
            self.notify_maybe_changed(wanted);
        }
    }

    /// Notifies of resources that may have changed unnoticed.
    fn notify_maybe_changed(&self, uris: Vec<String>) {
        let Some(connections) = self.connections.upgrade() else {
            return;
        };
        for uri in uris {
            let params = RawJson::object().with_members(&[("uri", RawJson::from(uri.as_str()))]);
            connections
                .notifier
                .notify(&Update::Resource(params.expect("an empty object is an object")));
        }
    }
}

/// Waits until the server is dropped.
async fn gone(uris: &mut watch::Receiver<SharedUris>) {
    while uris.changed().await.is_ok() {}
}

/// Pause before a server that cannot be reached is tried again.
fn pause(error: &ConnectError) -> Duration {
    match error {
        ConnectError::Client(error) => match error.kind() {
            Fault::Unavailable { retry_in, .. } => *retry_in,
            _ => Duration::from_secs(1),
        },
        ConnectError::Settings(_) => Duration::from_secs(60),
    }
}
