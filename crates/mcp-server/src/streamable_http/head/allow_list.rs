use std::{fmt, ops::Deref, sync::Arc};

use arc_swap::ArcSwap;

/// Host names under which a server may be called, and origins of web pages that may use it.
///
/// # Examples
///
/// ```
/// use mcp_server::{AllowList, HttpServerOptions};
///
/// let allowed = AllowList::default()
///     .host("tools.example.com")
///     .origin("https://chat.example.com");
/// let options = HttpServerOptions::default().allowed(allowed);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct AllowList {
    /// Host names under which the server may be called. A web page whose name was bound to this machine's address (DNS
    /// rebinding) calls it by another name, and is refused.
    pub hosts: AllowedHosts,
    /// Origins of web pages that may use the server and read its responses (CORS), such as `https://example.com`, in addition
    /// to the server's own. Another port of loopback is another origin.
    pub origins: Vec<String>,
}

/// Host names under which a server may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllowedHosts {
    /// Names of loopback, and these: with a port to allow that port only, otherwise any port.
    Loopback(Vec<String>),
    /// Any name: for a server behind a proxy that checks names.
    Any,
}

/// [`AllowList`] that can be changed while requests are served. Clones share it.
#[derive(Clone, Default)]
pub struct SharedAllowList(Arc<ArcSwap<AllowList>>);

impl AllowList {
    /// Creates a list that allows any host name, and the server's own origin only: for a server behind a proxy that checks
    /// names.
    #[must_use]
    pub fn any_host() -> Self {
        Self {
            hosts: AllowedHosts::Any,
            origins: Vec::new(),
        }
    }

    /// Adds a host name: with a port to allow that port only, otherwise any port.
    #[must_use]
    pub fn host(mut self, host: impl Into<String>) -> Self {
        if let AllowedHosts::Loopback(more) = &mut self.hosts {
            more.push(host.into());
        }
        self
    }

    /// Adds the origin of web pages, such as `https://example.com`.
    #[must_use]
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }
}

impl Default for AllowedHosts {
    fn default() -> Self {
        Self::Loopback(Vec::new())
    }
}

impl SharedAllowList {
    /// Creates a shared list.
    #[must_use]
    pub fn new(allowed: AllowList) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(allowed)))
    }

    /// Returns the current list.
    #[must_use]
    pub fn load(&self) -> impl Deref<Target = Arc<AllowList>> + use<> {
        self.0.load()
    }

    /// Replaces the list, from the next request on. Open sessions and streams stay open; their next requests are checked
    /// against the new list.
    pub fn store(&self, allowed: AllowList) {
        self.0.store(Arc::new(allowed));
    }

    /// Replaces the list with a changed copy.
    pub(crate) fn update(&self, change: impl FnOnce(AllowList) -> AllowList) {
        self.store(change((**self.load()).clone()));
    }
}

impl From<AllowList> for SharedAllowList {
    fn from(allowed: AllowList) -> Self {
        Self::new(allowed)
    }
}

impl fmt::Debug for SharedAllowList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedAllowed").field(&**self.load()).finish()
    }
}
