//! How much of what is shared is in use now.

use crate::Toolplane;

/// What the cache of answers holds, and does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheUse {
    /// How many bytes the answers take that are kept, about.
    pub n_bytes: u64,
    /// How many calls run now for all who want the same.
    pub n_fetches: usize,
}

/// The connections to one server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionUse {
    /// How many requests wait for an answer on the connection that all share.
    pub n_requests: usize,
    /// How many connections single clients have for themselves.
    pub n_own: usize,
    /// How many of those are in use.
    pub n_own_used: usize,
    /// How many of those there may be.
    pub max_own: usize,
}

/// What tools that are HTTP APIs have on the network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpUse {
    /// How many connections were made. Later requests use them again.
    pub n_opened: u64,
    /// How many connections could not be made.
    pub n_failed: u64,
    /// Number of requests that were begun.
    pub n_requests: u64,
    /// How many requests run now, by scheme and host; `other` for tools whose host only a call says.
    pub n_running: Vec<(String, u64)>,
}

impl Toolplane {
    /// What the cache of answers holds, and does.
    #[must_use]
    pub fn cache_use(&self) -> CacheUse {
        CacheUse {
            n_bytes: self.0.share.n_bytes(),
            n_fetches: self.0.share.n_running(),
        }
    }

    /// The connections to each server, by its name.
    #[must_use]
    pub fn connection_use(&self) -> Vec<(String, ConnectionUse)> {
        self.0.running.load().servers.connection_use()
    }

    /// What tools that are HTTP APIs have on the network.
    #[must_use]
    pub fn http_use(&self) -> HttpUse {
        self.0.running.load().http_use()
    }
}
