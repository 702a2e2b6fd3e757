use std::time::Duration;

use crate::Handlers;

/// Which era of the protocol to speak.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EraChoice {
    /// The one that the server speaks. Over HTTP `server/discover` is tried first and `initialize` when the answer
    /// is not that of a modern server; over stdio it is the other way round, since there are servers that end when
    /// the first message they read is not `initialize`.
    #[default]
    Auto,
    /// The modern one wherever the server speaks it: `server/discover` is tried first over stdio as well. A server that
    /// answers neither way for a while is sent `initialize` beside it, and what is answered first counts.
    Newest,
    /// `initialize` only: up to 2025-11-25.
    Legacy,
    /// `server/discover` only: from 2026-07-28.
    Modern,
}

/// How a connection is opened and what it tolerates.
#[derive(Debug, Clone)]
pub struct ConnectionOptions {
    /// The name that the server is told.
    pub client_name: String,
    /// The version that the server is told.
    pub client_version: String,
    /// Which era to speak.
    pub era: EraChoice,
    /// What is done for servers that ask the client for something.
    pub handlers: Handlers,
    /// How long the server may take until the connection is open.
    pub start_timeout: Duration,
    /// How large one message of the server may be.
    pub max_message: usize,
    /// How many lines in a row may be no message before the connection counts as broken.
    pub max_garbage: u32,
    /// How long the server may take no byte of a request before the connection counts as broken.
    pub write_stall: Duration,
    /// How long to wait in each step of shutting a child process down: after its input is closed, after SIGTERM.
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
