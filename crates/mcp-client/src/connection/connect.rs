use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use raw_json::RawJson;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{Connection, Established, Inner, Link, server_info::modern_meta};
use crate::{ClientError, ClientErrorKind, ConnectionOptions, notifications::Notifier, stream::StreamLink};
#[cfg(feature = "stdio")]
use crate::{Command, process::Process};

impl Connection {
    /// Starts a program and opens a connection over its standard input and output.
    ///
    /// # Errors
    /// Returns [`ClientErrorKind::StartFailed`] if the program cannot be run, ends, or does not open the connection in
    /// time. The error contains the tail of its stderr.
    ///
    /// # Cancellation
    /// Dropping the future kills the program with all its descendants.
    #[cfg(feature = "stdio")]
    pub async fn spawn(command: &Command, options: ConnectionOptions) -> Result<Self, ClientError> {
        Self::spawn_with(command, options, Notifier::default()).await
    }

    #[cfg(feature = "stdio")]
    pub(crate) async fn spawn_with(
        command: &Command,
        options: ConnectionOptions,
        notifier: Notifier,
    ) -> Result<Self, ClientError> {
        let grace = options.shutdown_grace;
        let link = match command.own_spawner() {
            Some(spawner) => {
                let starting = Process::spawn_by(spawner, command, grace);
                let limit = options.start_timeout;
                let (process, stdin, stdout) = match tokio::time::timeout(limit, starting).await {
                    Ok(started) => started?,
                    Err(_) => return Err(ClientError::new(ClientErrorKind::Timeout(limit))),
                };
                StreamLink::open(stdout, stdin, Some(process), &options, notifier.clone())
            }
            None => {
                let (process, stdin, stdout) = Process::spawn(command, grace)?;
                StreamLink::open(stdout, stdin, Some(process), &options, notifier.clone())
            }
        };
        Self::open(Link::Stream(link), options, notifier).await
    }

    /// Opens a connection over a pair of byte streams, framed like stdio.
    ///
    /// # Errors
    /// Returns [`ClientErrorKind::StartFailed`] if the peer does not open the connection in time.
    ///
    /// # Cancellation
    /// Dropping the future drops both streams.
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

    pub(super) async fn open(
        link: Link,
        options: ConnectionOptions,
        notifier: Notifier,
    ) -> Result<Self, ClientError> {
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
