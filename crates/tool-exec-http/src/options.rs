use std::{fmt, sync::Arc, time::Duration};

use crate::{Network, Resolve, SystemResolver};

/// What an operator decides for all HTTP tools.
///
/// ```
/// use tool_exec_http::HttpExecutorOptions;
///
/// let options = HttpOptions {
///     allow_private_networks: vec!["127.0.0.1".parse()?, "*.corp.example".parse()?],
///     ..HttpOptions::default()
/// };
/// # let _ = options;
/// # Ok::<(), tool_exec_http::NetworkError>(())
/// ```
#[derive(Clone)]
pub struct HttpExecutorOptions {
    /// Networks and hosts that any tool may reach although they are not public: none by default.
    pub allow_private_networks: Vec<Network>,
    /// How long one exchange may take if neither the tool nor its settings say.
    pub timeout: Duration,
    /// How long connecting may take if a tool's settings do not say.
    pub connect_timeout: Duration,
    /// The largest response in bytes, after decompression, if a tool's settings do not say.
    pub max_response_bytes: usize,
    /// The largest request body in bytes if a tool's settings do not say.
    pub max_request_bytes: usize,
    /// How host names become addresses. What it finds is checked before anything is connected.
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
            resolver: Arc::new(SystemResolver),
        }
    }
}

impl fmt::Debug for HttpExecutorOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions")
            .field("allow_private_networks", &self.allow_private_networks)
            .field("timeout", &self.timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("max_response_bytes", &self.max_response_bytes)
            .field("max_request_bytes", &self.max_request_bytes)
            .finish_non_exhaustive()
    }
}
