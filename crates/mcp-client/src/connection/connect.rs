use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use raw_json::RawJson;
use tokio::io::{AsyncRead, AsyncWrite, split};

use super::{Connection, Established, Inner, Link, server_info::modern_meta};
use crate::{
    ClientError, ClientErrorKind, Command, ConnectionOptions, EraChoice, HttpEndpoint,
    http::{self, HttpLink},
    notifications::Notifier,
    process::Process,
    stream::StreamLink,
};

impl Connection {
    /// Starts a program and opens a connection over its standard input and output.
    ///
    /// # Errors
    /// Returns [`ClientErrorKind::StartFailed`] if the program cannot be run, ends, or does not open the connection in
    /// time. The error contains the tail of its stderr.
    pub async fn spawn(command: &Command, options: ConnectionOptions) -> Result<Self, ClientError> {
        Self::spawn_with(command, options, Notifier::default()).await
    }

    pub(crate) async fn spawn_with(
        command: &Command,
        options: ConnectionOptions,
        notifier: Notifier,
    ) -> Result<Self, ClientError> {
        let (process, stdin, stdout) = Process::spawn(command, options.shutdown_grace)?;
        let link = StreamLink::open(stdout, stdin, Some(process), &options, notifier.clone());
        Self::open(Link::Stream(link), options, notifier).await
    }

    /// Opens a connection over a pair of byte streams, framed like stdio.
    ///
    /// # Errors
    /// Returns [`ClientErrorKind::StartFailed`] if the peer does not open the connection in time.
    pub async fn from_streams<R, W>(
        reader: R,
        writer: W,
        options: ConnectionOptions,
    ) -> Result<Self, ClientError>
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let notifier = Notifier::default();
        let link = StreamLink::open(reader, writer, None, &options, notifier.clone());
        Self::open(Link::Stream(link), options, notifier).await
    }

    /// Opens a connection over Streamable HTTP.
    ///
    /// # Errors
    /// Returns [`ClientErrorKind::Unreachable`], [`ClientErrorKind::Auth`], [`ClientErrorKind::HttpStatus`] or
    /// [`ClientErrorKind::StartFailed`], depending on the server's response.
    pub async fn http(endpoint: &HttpEndpoint, options: ConnectionOptions) -> Result<Self, ClientError> {
        Self::http_with(endpoint, options, Notifier::default()).await
    }

    pub(crate) async fn http_with(
        endpoint: &HttpEndpoint,
        options: ConnectionOptions,
        notifier: Notifier,
    ) -> Result<Self, ClientError> {
        let link = HttpLink::new(endpoint, &options, notifier.clone())?;
        let done = Self::open(Link::Http(link), options.clone(), notifier.clone()).await;
        match done {
            Err(error)
                if endpoint.sse_fallback
                    && options.era != EraChoice::Modern
                    && error.indicates_other_transport() =>
            {
                // If both transports fail, the error of the first is returned: most servers speak Streamable HTTP.
                Self::sse_with(endpoint, options, notifier)
                    .await
                    .map_err(|_| error)
            }
            done => done,
        }
    }

    /// Opens a connection over HTTP+SSE, the transport of 2024-11-05, for servers that speak no other.
    ///
    /// # Errors
    /// Returns the errors of [`http`](Self::http), and [`ClientErrorKind::Invalid`] if the options require a modern
    /// server, which never speaks this transport.
    pub async fn sse(endpoint: &HttpEndpoint, options: ConnectionOptions) -> Result<Self, ClientError> {
        Self::sse_with(endpoint, options, Notifier::default()).await
    }

    pub(crate) async fn sse_with(
        endpoint: &HttpEndpoint,
        mut options: ConnectionOptions,
        notifier: Notifier,
    ) -> Result<Self, ClientError> {
        if options.era == EraChoice::Modern {
            let detail = "modern servers do not speak HTTP+SSE";
            return Err(ClientError::new(ClientErrorKind::Invalid(detail.to_owned())));
        }
        options.era = EraChoice::Legacy;
        let opened = http::open_sse(endpoint, &options).await?;
        let (reader, writer) = split(opened.lines);
        let link = StreamLink::open(reader, writer, None, &options, notifier.clone());
        link.fail_requests_from(opened.failures);
        Self::open(Link::Stream(link), options, notifier).await
    }

    /// Opens a connection over WebSocket, with the subprotocol `mcp` and one message in each text frame. The endpoint
    /// must be created by [`HttpEndpoint::websocket`].
    ///
    /// # Errors
    /// Returns the errors of [`http`](Self::http), and [`ClientErrorKind::Invalid`] if the feature `websocket` is
    /// disabled.
    pub async fn websocket(endpoint: &HttpEndpoint, options: ConnectionOptions) -> Result<Self, ClientError> {
        Self::websocket_with(endpoint, options, Notifier::default()).await
    }

    pub(crate) async fn websocket_with(
        endpoint: &HttpEndpoint,
        options: ConnectionOptions,
        notifier: Notifier,
    ) -> Result<Self, ClientError> {
        let (lines, bridge) = http::open_websocket(endpoint, &options).await?;
        let (reader, writer) = split(lines);
        let link = StreamLink::open(reader, writer, None, &options, notifier.clone());
        tokio::spawn(bridge.run(link.closed_signal(), link.end_of_stream()));
        Self::open(Link::Stream(link), options, notifier).await
    }

    async fn open(link: Link, options: ConnectionOptions, notifier: Notifier) -> Result<Self, ClientError> {
        let limit = options.start_timeout;
        let connection = Self(Arc::new(Inner {
            link,
            options,
            notifier,
            established: OnceLock::new(),
            subscribed_uris: Mutex::default(),
        }));
        let opened = match tokio::time::timeout(limit, connection.handshake()).await {
            Ok(done) => done,
            Err(_) => Err(ClientError::new(ClientErrorKind::Timeout(limit))),
        };
        match opened {
            Ok(server) => {
                let meta = modern_meta(&connection.0.options, server.revision);
                let meta_object = RawJson::from_members(&meta);
                connection.0.established.get_or_init(|| Established {
                    server,
                    meta,
                    meta_object,
                });
                connection.after_handshake().await?;
                Ok(connection)
            }
            Err(error) => Err(connection.start_error(error)),
        }
    }
}
