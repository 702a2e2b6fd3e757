use std::{
    collections::BTreeSet,
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use mcp_client::{Changes, ClientErrorKind as Fault, Connection, RequestOptions, State};
use raw_json::RawJson;
use tokio::{sync::watch, time::sleep};
use tool_core::{ErrorKind, ToolError, Update};

use super::filter::SharedUris;
use crate::{
    connection::{ConnectError, Connections},
    errors::request_error,
};

/// How long the server may take to answer.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a server is left alone that was started again and refused a subscription.
const RETRY_PAUSE: Duration = Duration::from_secs(30);

/// A resource about which the server is asked. Unless it agrees while somebody waits for that, nobody has asked.
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
    /// Asks for news of a resource until [`Connections::unsubscribe`], also when the server was started again. To ask
    /// again changes nothing.
    pub(crate) async fn subscribe(self: &Arc<Self>, uri: &str) -> Result<(), ToolError> {
        let server = &self.settings.name;
        let connection = match self.open_shared().await {
            Ok(connection) => connection,
            Err(error) => return Err(error.into_request_error(server)),
        };
        check_subscribe_support(&connection, server)?;
        let uris = &self.shared_filter.uris;
        // Noted first: a server that is started again in the meantime is asked for it as well.
        let note = |uris: &mut SharedUris| match uris.contains_key(uri) {
            true => false,
            false => uris.insert(uri.to_owned(), false).is_none(),
        };
        while !uris.send_if_modified(note) {
            if self.shared_filter.settled(uri).await {
                return Ok(());
            }
        }
        let mut pending = PendingRequest {
            uris,
            uri,
            is_agreed: false,
        };
        let done = connection
            .subscribe(uri, RequestOptions::within(REQUEST_TIMEOUT))
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
        let is_known = self.shared_filter.settled(uri).await;
        // Who wants it meanwhile asks when this is through: the server may take two requests in any order.
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
            .is_some_and(|upstream| upstream.status().state == State::Ready);
        if !runs {
            return Ok(());
        }
        let server = &self.settings.name;
        let connection = self
            .open_shared()
            .await
            .map_err(|error| error.into_request_error(server))?;
        let done = connection
            .unsubscribe(uri, RequestOptions::within(REQUEST_TIMEOUT))
            .await;
        done.map_err(|error| request_error(server, error))
    }
}

/// Fails if the server of a connection never gives news of resources.
pub(super) fn check_subscribe_support(connection: &Connection, server: &str) -> Result<(), ToolError> {
    let resources = connection.server().capabilities.get("resources");
    let tells = resources.and_then(|resources| resources.get("subscribe"));
    if tells.is_some_and(|tells| tells.as_str() == "true") {
        return Ok(());
    }
    let message = format!("the server `{server}` has no news of resources to give");
    Err(ToolError::new(ErrorKind::UpstreamError, message))
}

/// Asks for the news again whenever the server may have forgotten that they are wanted, for as long as it is held by
/// anyone else.
struct Resubscriber {
    changes: watch::Receiver<Changes>,
    uris: watch::Receiver<SharedUris>,
    connections: Weak<Connections>,
}

impl Resubscriber {
    async fn run(mut self, mut connection: Connection) {
        let mut seen = *self.changes.borrow_and_update();
        // What the server has refused since it was started again.
        let mut refused = BTreeSet::new();
        loop {
            let changed = tokio::select! {
                _ = connection.closed() => None,
                // The upstream and the set go with the server.
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
                    .subscribe(uri, RequestOptions::within(REQUEST_TIMEOUT))
                    .await;
                if let Err(error) = done {
                    tracing::warn!(uri, %error, "a server that was started again has no news of a resource");
                    refused.insert(uri.clone());
                }
            }
            // What has changed since the server forgot them is unknown.
            self.notify_maybe_changed(wanted);
        }
    }

    /// Tells of resources that may have changed while nobody heard of it.
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

/// Waits until the server is gone.
async fn gone(uris: &mut watch::Receiver<SharedUris>) {
    while uris.changed().await.is_ok() {}
}

/// How long a server that cannot be reached is left alone before it is tried again.
fn pause(error: &ConnectError) -> Duration {
    match error {
        ConnectError::Client(error) => match error.kind() {
            Fault::Unavailable { retry_in, .. } => *retry_in,
            _ => Duration::from_secs(1),
        },
        ConnectError::Settings(_) => Duration::from_secs(60),
    }
}
