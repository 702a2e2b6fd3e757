use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use mcp_client::{ChangeCounts, ClientErrorKind as Fault, Connection, RequestOptions, ServerState};
use raw_json::RawJson;
use tokio::{sync::watch, time::sleep};
use tool_core::{ErrorKind, ToolError, Update};

use crate::{
    connections::{Connections, Unreachable},
    fault::request_error,
};

/// The resources of which news are wanted, and whether the server has agreed to them and is asked for nothing else now. They
/// come over the shared connection.
type Wanted = BTreeMap<String, bool>;

/// What is wanted, and who asks for it again.
#[derive(Default)]
pub(crate) struct Subscriptions {
    uris: watch::Sender<Wanted>,
    /// Whether a task asks for them again when the connection is opened anew.
    kept: AtomicBool,
}

/// How long the server may take to answer.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);
/// How long a server is left alone that was started again and refused a subscription.
const AGAIN: Duration = Duration::from_secs(30);

/// A resource about which the server is asked. Unless it agrees while somebody waits for that, nobody has asked.
struct Asking<'a> {
    uris: &'a watch::Sender<Wanted>,
    uri: &'a str,
    is_agreed: bool,
}

impl Drop for Asking<'_> {
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
        let connection = match self.shared().await {
            Ok(connection) => connection,
            Err(error) => return Err(error.of_request(server)),
        };
        agrees_to_subscribe(&connection, server)?;
        let uris = &self.subscriptions.uris;
        // Noted first: a server that is started again in the meantime is asked for it as well.
        let note = |uris: &mut Wanted| match uris.contains_key(uri) {
            true => false,
            false => uris.insert(uri.to_owned(), false).is_none(),
        };
        while !uris.send_if_modified(note) {
            if self.subscriptions.settled(uri).await {
                return Ok(());
            }
        }
        let mut asking = Asking {
            uris,
            uri,
            is_agreed: false,
        };
        let done = connection.subscribe(uri, RequestOptions::with_timeout(LIMIT)).await;
        asking.is_agreed = done.is_ok();
        drop(asking);
        done.map_err(|error| request_error(server, error))?;
        if !self.subscriptions.kept.swap(true, Ordering::SeqCst)
            && let Some(upstream) = self.known()
        {
            let keeping = Keeping {
                changes: upstream.changes(),
                uris: uris.subscribe(),
                connections: Arc::downgrade(self),
            };
            tokio::spawn(keeping.run(connection));
        }
        Ok(())
    }

    /// Ends [`Connections::subscribe`]. A server that does not run is not started for it.
    pub(crate) async fn unsubscribe(&self, uri: &str) -> Result<(), ToolError> {
        let uris = &self.subscriptions.uris;
        let is_known = self.subscriptions.settled(uri).await;
        // Who wants it meanwhile asks when this is through: the server may take two requests in any order.
        let claim = |uris: &mut Wanted| uris.get_mut(uri).is_some_and(std::mem::take);
        if !is_known || !uris.send_if_modified(claim) {
            return Ok(());
        }
        let _asking = Asking {
            uris,
            uri,
            is_agreed: false,
        };
        let runs = self
            .known()
            .is_some_and(|upstream| upstream.status().state == ServerState::Ready);
        if !runs {
            return Ok(());
        }
        let server = &self.settings.name;
        let connection = self.shared().await.map_err(|error| error.of_request(server))?;
        let done = connection.unsubscribe(uri, RequestOptions::with_timeout(LIMIT)).await;
        done.map_err(|error| request_error(server, error))
    }
}

/// Fails if the server of a connection never gives news of resources.
pub(crate) fn agrees_to_subscribe(connection: &Connection, server: &str) -> Result<(), ToolError> {
    let resources = connection.server().capabilities.get("resources");
    let tells = resources.and_then(|resources| resources.get("subscribe"));
    if tells.is_some_and(|tells| tells.as_str() == "true") {
        return Ok(());
    }
    let message = format!("the server `{server}` has no news of resources to give");
    Err(ToolError::new(ErrorKind::UpstreamError, message))
}

impl Subscriptions {
    /// Whether news of any resource is wanted.
    pub(crate) fn any(&self) -> bool {
        !self.uris.borrow().is_empty()
    }

    /// Waits until nobody asks about a resource, and says whether its news come.
    async fn settled(&self, uri: &str) -> bool {
        let mut uris = self.uris.subscribe();
        let settled = uris.wait_for(|uris| uris.get(uri) != Some(&false)).await;
        settled.is_ok_and(|uris| uris.contains_key(uri))
    }
}

/// Asks for the news again whenever the server may have forgotten that they are wanted, for as long as it is held by
/// anyone else.
struct Keeping {
    changes: watch::Receiver<ChangeCounts>,
    uris: watch::Receiver<Wanted>,
    connections: Weak<Connections>,
}

impl Keeping {
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
                () = sleep(AGAIN), if !refused.is_empty() => None,
                () = gone(&mut self.uris) => return,
            };
            if let Some(changed) = changed
                && changed.openings == seen.openings
            {
                seen = changed;
                let uris = self.uris.borrow().keys().cloned().collect();
                self.tell_of(uris);
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
            let opened = connections.shared().await;
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
                let done = connection.subscribe(uri, RequestOptions::with_timeout(LIMIT)).await;
                if let Err(error) = done {
                    tracing::warn!(uri, %error, "a server that was started again has no news of a resource");
                    refused.insert(uri.clone());
                }
            }
            // What has changed since the server forgot them is unknown.
            self.tell_of(wanted);
        }
    }

    /// Tells of resources that may have changed while nobody heard of it.
    fn tell_of(&self, uris: Vec<String>) {
        let Some(connections) = self.connections.upgrade() else {
            return;
        };
        for uri in uris {
            let params = RawJson::object().with_members(&[("uri", RawJson::from(uri.as_str()))]);
            connections
                .updates
                .tell(&Update::Resource(params.expect("an empty object is an object")));
        }
    }
}

/// Waits until the server is gone.
async fn gone(uris: &mut watch::Receiver<Wanted>) {
    while uris.changed().await.is_ok() {}
}

/// How long a server that cannot be reached is left alone before it is tried again.
fn pause(error: &Unreachable) -> Duration {
    match error {
        Unreachable::Client(error) => match error.kind() {
            Fault::Unavailable { retry_in, .. } => *retry_in,
            _ => Duration::from_secs(1),
        },
        Unreachable::Settings(_) => Duration::from_secs(60),
    }
}
