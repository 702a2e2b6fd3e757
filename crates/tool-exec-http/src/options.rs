use std::{fmt, sync::Arc, time::Duration};

use crate::{Network, Resolve, SystemResolver};

/// Options that an operator sets for all HTTP tools.
///
/// # Examples
///
/// ```
/// use tool_exec_http::HttpExecutorOptions;
///
/// let options = HttpExecutorOptions::default().with_allow_private_networks(vec!["127.0.0.1".parse()?, "*.corp.example".parse()?]);
/// # let _ = options;
/// # Ok::<(), tool_exec_http::NetworkError>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpExecutorOptions {
    /// Networks and hosts that any tool may reach although they are not public. None by default.
    pub allow_private_networks: Vec<Network>,
    /// Default timeout of one exchange, if neither the tool nor its settings set one: 30 s.
    pub timeout: Duration,
    /// Default timeout of connecting, if a tool's settings set none: 5 s.
    pub connect_timeout: Duration,
    /// Default maximum size of a response in bytes, after decompression: 16 MiB.
    pub max_response_bytes: usize,
    /// Default maximum size of a request body in bytes: 4 MiB.
    pub max_request_bytes: usize,
    /// `false` if nobody receives callbacks, so that tools which need them are refused: by default `true`. See
    /// [`Operations`](crate::Operations).
    pub has_callbacks: bool,
    /// Resolver of host names. Its addresses are checked before a connection is made.
    pub resolver: Arc<dyn Resolve>,
}

impl Default for HttpExecutorOptions {
    fn default() -> Self {
        Self {
            allow_private_networks: Vec::new(),
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            max_response_bytes: 16 << 20,
            max_request_bytes: 4 << 20,
            has_callbacks: true,
            resolver: Arc::new(SystemResolver),
        }
    }
}

impl HttpExecutorOptions {
    /// Sets the networks and hosts that any tool may reach although they are not public.
    #[must_use]
    pub fn with_allow_private_networks(
        mut self,
        allow_private_networks: impl IntoIterator<Item = Network>,
    ) -> Self {
        self.allow_private_networks = allow_private_networks.into_iter().collect();
        self
    }

    /// Sets the default timeout of one exchange.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the default timeout of connecting.
    #[must_use]
    pub fn with_connect_timeout(mut self, connect_timeout: Duration) -> Self {
        self.connect_timeout = connect_timeout;
        self
    }

    /// Sets the default maximum size of a response, in bytes.
    #[must_use]
    pub fn with_max_response_bytes(mut self, max_response_bytes: usize) -> Self {
        self.max_response_bytes = max_response_bytes;
        self
    }

    /// Sets the default maximum size of a request body, in bytes.
    #[must_use]
    pub fn with_max_request_bytes(mut self, max_request_bytes: usize) -> Self {
        self.max_request_bytes = max_request_bytes;
        self
    }

    /// Sets whether callbacks are received.
    #[must_use]
    pub fn with_callbacks(mut self, has_callbacks: bool) -> Self {
        self.has_callbacks = has_callbacks;
        self
    }

    /// Sets the resolver of host names.
    #[must_use]
    pub fn with_resolver(mut self, resolver: Arc<dyn Resolve>) -> Self {
        self.resolver = resolver;
        self
    }
}

impl fmt::Debug for HttpExecutorOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpExecutorOptions")
            .field("allow_private_networks", &self.allow_private_networks)
            .field("timeout", &self.timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("max_response_bytes", &self.max_response_bytes)
            .field("max_request_bytes", &self.max_request_bytes)
            .field("has_callbacks", &self.has_callbacks)
            .finish_non_exhaustive()
    }
}
