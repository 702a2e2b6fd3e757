//! Current use of shared resources.

use crate::Toolplane;

/// Use of the result cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheUse {
    /// Approximate size of the cached results, in bytes.
    pub n_bytes: u64,
    /// Number of shared executions that run now.
    pub n_fetches: usize,
}

/// Use of the connections to one server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionUse {
    /// Number of requests in flight on the shared connection.
    pub n_requests: usize,
    /// Number of connections for single clients.
    pub n_own: usize,
    /// Number of those that are in use.
    pub n_own_used: usize,
    /// Maximum number of those.
    pub max_own: usize,
}

/// Network use of HTTP tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpUse {
    /// Number of opened connections. Later requests reuse them.
    pub n_opened: u64,
    /// Number of failed connections.
    pub n_failed: u64,
    /// Number of started requests.
    pub n_requests: u64,
    /// Number of requests in flight, by scheme and host; `other` for tools whose host depends on the call.
    pub n_running: Vec<(String, u64)>,
}

impl Toolplane {
    /// Returns the use of the result cache.
    #[must_use]
    pub fn cache_use(&self) -> CacheUse {
        CacheUse {
            n_bytes: self.0.cache.n_bytes(),
            n_fetches: self.0.cache.n_running(),
        }
    }

    /// Returns the use of the connections to each server, by its name.
    #[must_use]
    pub fn connection_use(&self) -> Vec<(String, ConnectionUse)> {
        self.0.live.load().servers.connection_use()
    }

    /// Returns the network use of HTTP tools.
    #[must_use]
    pub fn http_use(&self) -> HttpUse {
        self.0.live.load().http_use()
    }
}
