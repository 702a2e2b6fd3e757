use std::{
    collections::BTreeSet,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use mcp_client::{Changes, Connection, ErrorKind as Fault, RequestOptions, State};
use tokio::{sync::watch, time::sleep};
use tool_core::{ErrorKind, ToolError};

use crate::{
    connections::{Connections, Unreachable},
    fault::request_error,
};

/// The resources of which news are wanted. They come over the shared connection.
#[derive(Default)]
pub(crate) struct Subscriptions {
    uris: watch::Sender<BTreeSet<String>>,
    /// Whether a task asks for them again when the connection is opened anew.
    kept: AtomicBool,
}

/// How long the server may take to answer.
const LIMIT: Duration = Duration::from_secs(30);

impl Connections {
    /// Asks for news of a resource until [`Connections::unsubscribe`], also when the server was started again. To ask
    /// again changes nothing.
    pub(crate) async fn subscribe(self: &Arc<Self>, uri: &str) -> Result<(), ToolError> {
        let server = &self.settings.name;
        let connection = match self.shared().await {
            Ok(connection) => connection,
            Err(error) => return Err(error.of_request(server)),
        };
        let resources = connection.server().capabilities.get("resources");
        let tells = resources.and_then(|resources| resources.get("subscribe"));
        if tells.is_none_or(|tells| tells.as_str() != "true") {
            let message = format!("the server `{server}` has no news of resources to give");
            return Err(ToolError::new(ErrorKind::UpstreamError, message));
        }
        let uris = &self.subscriptions.uris;
        // Noted first: a server that is started again in the meantime is asked for it as well.
        if !uris.send_if_modified(|uris| uris.insert(uri.to_owned())) {
            return Ok(());
        }
        let done = connection.subscribe(uri, RequestOptions::within(LIMIT)).await;
        if let Err(error) = done {
            uris.send_modify(|uris| {
                uris.remove(uri);
            });
            return Err(request_error(server, error));
        }
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
        let known = self.subscriptions.uris.send_if_modified(|uris| uris.remove(uri));
        let runs = self
            .known()
            .is_some_and(|upstream| upstream.status().state == State::Ready);
        if !known || !runs {
            return Ok(());
        }
        let server = &self.settings.name;
        let connection = self.shared().await.map_err(|error| error.of_request(server))?;
        let done = connection.unsubscribe(uri, RequestOptions::within(LIMIT)).await;
        done.map_err(|error| request_error(server, error))
    }
}

/// Asks for the news again whenever the server may have forgotten that they are wanted, for as long as it is held by
/// anyone else.
struct Keeping {
    changes: watch::Receiver<Changes>,
    uris: watch::Receiver<BTreeSet<String>>,
    connections: Weak<Connections>,
}

impl Keeping {
    async fn run(mut self, mut connection: Connection) {
        let mut seen = self.changes.borrow_and_update().openings;
        loop {
            tokio::select! {
                _ = connection.closed() => {}
                // The upstream and the set go with the server.
                _ = self.changes.wait_for(|changes| changes.openings != seen) => {}
                () = gone(&mut self.uris) => return,
            }
            let Ok(uris) = self
                .uris
                .wait_for(|uris| !uris.is_empty())
                .await
                .map(|uris| uris.clone())
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
            seen = self.changes.borrow_and_update().openings;
            for uri in uris {
                let done = connection.subscribe(&uri, RequestOptions::within(LIMIT)).await;
                if let Err(error) = done {
                    tracing::warn!(uri, %error, "a server that was started again has no news of a resource");
                }
            }
        }
    }
}

/// Waits until the server is gone.
async fn gone(uris: &mut watch::Receiver<BTreeSet<String>>) {
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
