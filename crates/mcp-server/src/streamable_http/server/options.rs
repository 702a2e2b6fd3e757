use std::time::Duration;

/// Options of a server of connections.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServeOptions {
    /// Maximum number of connections at a time: 1,024. More wait to be accepted.
    pub max_connections: usize,
    /// Maximum time for a client to send the head of a request: 10 s. Measured in whole seconds.
    pub header_timeout: Duration,
    /// Maximum time that a connection may be idle between two requests: 2 min. Measured in whole seconds.
    pub idle_timeout: Duration,
    /// Maximum time for which a client may accept no byte: 60 s. Measured in whole seconds.
    pub write_timeout: Duration,
    /// Time that connections have to finish after the server is shut down: 30 s.
    pub drain: Duration,
}

impl ServeOptions {
    /// Sets [`max_connections`](Self#structfield.max_connections).
    #[must_use]
    pub fn max_connections(mut self, max_connections: usize) -> Self {
        self.max_connections = max_connections;
        self
    }

    /// Sets [`header_timeout`](Self#structfield.header_timeout).
    #[must_use]
    pub fn header_timeout(mut self, header_timeout: Duration) -> Self {
        self.header_timeout = header_timeout;
        self
    }

    /// Sets [`idle_timeout`](Self#structfield.idle_timeout).
    #[must_use]
    pub fn idle_timeout(mut self, idle_timeout: Duration) -> Self {
        self.idle_timeout = idle_timeout;
        self
    }

    /// Sets [`write_timeout`](Self#structfield.write_timeout).
    #[must_use]
    pub fn write_timeout(mut self, write_timeout: Duration) -> Self {
        self.write_timeout = write_timeout;
        self
    }

    /// Sets [`drain`](Self#structfield.drain).
    #[must_use]
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            max_connections: 1024,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(120),
            write_timeout: Duration::from_secs(60),
            drain: Duration::from_secs(30),
        }
    }
}
