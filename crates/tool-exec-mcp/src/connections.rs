use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use mcp_client::{Connection, ConnectionOptions, Endpoint, Error, RequestOptions, Upstream, UpstreamOptions};
use raw_json::RawJson;
use tokio::sync::OnceCell;
use tool_core::{CallContext, ErrorKind, Secrets, ToolError};

use crate::{ServerSettings, fault::tool_error, settings::ResolveError};

/// The connections to one server.
pub(crate) struct Connections {
    settings: Arc<ServerSettings>,
    secrets: Arc<dyn Secrets>,
    endpoint: OnceCell<Endpoint>,
    /// What lists come from, and what calls share.
    shared: OnceCell<Upstream>,
    stopped: AtomicBool,
}

/// A connection that one call may use until this is dropped.
pub(crate) struct Checkout {
    /// For what is known of the server: requests of the call are made by [`Checkout::request`].
    pub(crate) connection: Connection,
}

impl Checkout {
    /// Makes a request for the call, see [`Connection::request`]. Questions and log messages that the server has
    /// meanwhile go to the caller's client; the time that it takes to answer does not count against the timeout.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: Option<RawJson>,
        options: RequestOptions,
    ) -> Result<RawJson, Error> {
        self.connection.request(method, params, options).await
    }
}

/// Why there is no connection.
pub(crate) enum Unreachable {
    Settings(ResolveError),
    Client(Error),
}

impl Unreachable {
    /// The error of a call that needs the connection.
    pub(crate) fn into_tool_error(self, cx: &CallContext, server: &str) -> ToolError {
        match self {
            Self::Client(error) => tool_error(cx, server, error),
            Self::Settings(error) => {
                let message = format!("the server `{server}` cannot be started: {error}");
                ToolError::new(ErrorKind::Unavailable, message).with_source(error)
            }
        }
    }
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(error) => error.fmt(f),
            Self::Client(error) => error.fmt(f),
        }
    }
}

impl Connections {
    pub(crate) fn new(settings: Arc<ServerSettings>, secrets: Arc<dyn Secrets>) -> Self {
        Self {
            settings,
            secrets,
            endpoint: OnceCell::new(),
            shared: OnceCell::new(),
            stopped: AtomicBool::new(false),
        }
    }

    /// The shared connection as far as anyone has needed it.
    pub(crate) fn known(&self) -> Option<&Upstream> {
        self.shared.get()
    }

    /// The shared connection, which is opened if need be.
    pub(crate) async fn shared(&self) -> Result<Connection, Unreachable> {
        let upstream = match self.shared.get() {
            Some(upstream) => upstream,
            None => {
                let endpoint = self.endpoint().await?;
                self.shared
                    .get_or_init(|| async { Upstream::new(endpoint.clone(), self.options()) })
                    .await
            }
        };
        if self.stopped.load(Ordering::SeqCst) {
            upstream.shutdown().await;
        }
        upstream.connection().await.map_err(Unreachable::Client)
    }

    /// The connection that a call is to use: the shared one, or one of its client's own.
    pub(crate) async fn checkout(&self, cx: &CallContext) -> Result<Checkout, ToolError> {
        let connection = self.shared().await;
        let connection = connection.map_err(|error| error.into_tool_error(cx, &self.settings.name))?;
        Ok(Checkout { connection })
    }

    /// Where the server is: its references get their values once.
    async fn endpoint(&self) -> Result<&Endpoint, Unreachable> {
        self.endpoint
            .get_or_try_init(|| self.settings.target.resolve(&*self.secrets))
            .await
            .map_err(Unreachable::Settings)
    }

    fn options(&self) -> UpstreamOptions {
        let connection = ConnectionOptions {
            client_name: "toolplane".to_owned(),
            era: self.settings.era,
            start_timeout: self.settings.start_timeout,
            max_message: self.settings.max_message,
            ..ConnectionOptions::default()
        };
        UpstreamOptions {
            connection,
            ..UpstreamOptions::default()
        }
    }

    /// Ends all of them in order. None is opened again.
    pub(crate) async fn shutdown(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        if let Some(upstream) = self.shared.get() {
            upstream.shutdown().await;
        }
    }
}
