use std::time::Duration;

/// One limit for each scope in which calls are counted together. A call must fit into all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scopes<T> {
    /// Limit of each principal, for all tools together.
    pub principal: Option<T>,
    /// Limit of each tool, for all callers together.
    pub tool: Option<T>,
    /// Limit of each upstream, for all of its tools together: see [`UpstreamState`](crate::UpstreamState).
    pub upstream: Option<T>,
    /// Limit of all calls.
    pub total: Option<T>,
}

/// Maximum number of concurrent calls, and of calls that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConcurrencySettings {
    /// Maximum number of running calls.
    pub max: u32,
    /// Maximum number of waiting calls; further calls are rejected.
    pub queue: u32,
    /// Maximum time that a call waits; a quarter of the time that it has left if absent.
    pub wait: Option<Duration>,
}

impl ConcurrencySettings {
    /// Default maximum number of waiting calls.
    pub const QUEUE: u32 = 100;

    /// Creates a limit of `max` concurrent calls, with the default queue.
    #[must_use]
    pub const fn new(max: u32) -> Self {
        Self {
            max,
            queue: Self::QUEUE,
            wait: None,
        }
    }
}

impl<T> Scopes<T> {
    /// Returns `true` if there is no limit in any scope.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.principal.is_none() && self.tool.is_none() && self.upstream.is_none() && self.total.is_none()
    }
}

impl<T> Scopes<T> {
    /// Returns these limits, completed by those of `wider` in scopes without one.
    #[must_use]
    pub fn or(self, wider: Self) -> Self {
        Self {
            principal: self.principal.or(wider.principal),
            tool: self.tool.or(wider.tool),
            upstream: self.upstream.or(wider.upstream),
            total: self.total.or(wider.total),
        }
    }
}

impl<T> Default for Scopes<T> {
    fn default() -> Self {
        Self {
            principal: None,
            tool: None,
            upstream: None,
            total: None,
        }
    }
}
