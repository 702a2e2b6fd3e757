use std::time::Duration;

use crate::Handlers;

/// Choice of the protocol era.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EraChoice {
    /// Detects the era of the server. Over HTTP, `server/discover` is tried first, and `initialize` if the response is
    /// not that of a modern server. Over stdio the order is reversed, since some servers end when the first message
    /// they read is not `initialize`.
    #[default]
    Auto,
    /// Prefers the modern era: `server/discover` is tried first over stdio as well. A server that does not respond for
    /// a while is also sent `initialize`, and the first response counts.
    Newest,
    /// Legacy era: `initialize` only, up to 2025-11-25.
    Legacy,
    /// Modern era: `server/discover` only, from 2026-07-28 on.
    Modern,
}

/// Options of a connection.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use mcp_client::ConnectionOptions;
///
/// let options = ConnectionOptions::default()
///     .client("my-agent", "1.0.0")
///     .start_timeout(Duration::from_secs(60));
/// assert_eq!(options.client_name, "my-agent");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConnectionOptions {
    /// Name of the client that is sent to the server.
    pub client_name: String,
    /// Version of the client that is sent to the server.
    pub client_version: String,
    /// Choice of the protocol era.
    pub era: EraChoice,
    /// Handlers for requests of the server.
    pub handlers: Handlers,
    /// Timeout for opening the connection.
    pub start_timeout: Duration,
    /// Maximum size of one message of the server, in bytes.
    pub max_message: usize,
    /// Maximum number of consecutive lines that are not messages, before the connection is considered broken.
    pub max_garbage: u32,
    /// Maximum time in which the server accepts no byte of a request, before the connection is considered broken.
    pub write_stall: Duration,
    /// Time for each step of ending a child process: after its stdin is closed, and after SIGTERM.
    pub shutdown_grace: Duration,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self {
            client_name: env!("CARGO_PKG_NAME").to_owned(),
            client_version: env!("CARGO_PKG_VERSION").to_owned(),
            era: EraChoice::Auto,
            handlers: Handlers::new(),
            start_timeout: Duration::from_secs(20),
            max_message: 16 * 1024 * 1024,
            max_garbage: 1000,
            write_stall: Duration::from_secs(10),
            shutdown_grace: Duration::from_secs(2),
        }
    }
}

impl ConnectionOptions {
    /// Sets the name and version that are sent to the server.
    #[must_use]
    pub fn client(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.client_name = name.into();
        self.client_version = version.into();
        self
    }

    /// Sets the choice of the protocol era.
    #[must_use]
    pub fn era(mut self, era: EraChoice) -> Self {
        self.era = era;
        self
    }

    /// Sets the handlers for requests of the server.
    #[must_use]
    pub fn handlers(mut self, handlers: Handlers) -> Self {
        self.handlers = handlers;
        self
    }

    /// Sets the timeout for opening the connection.
    #[must_use]
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// Sets the maximum size of one message of the server, in bytes.
    #[must_use]
    pub fn max_message(mut self, bytes: usize) -> Self {
        self.max_message = bytes;
        self
    }

    /// Sets the maximum number of consecutive lines that are not messages.
    #[must_use]
    pub fn max_garbage(mut self, lines: u32) -> Self {
        self.max_garbage = lines;
        self
    }

    /// Sets the maximum time in which the server accepts no byte of a request.
    #[must_use]
    pub fn write_stall(mut self, timeout: Duration) -> Self {
        self.write_stall = timeout;
        self
    }

    /// Sets the time for each step of ending a child process.
    #[must_use]
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.shutdown_grace = grace;
        self
    }
}
