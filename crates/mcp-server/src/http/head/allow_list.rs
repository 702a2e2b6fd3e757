use std::{fmt, ops::Deref, sync::Arc};

use arc_swap::ArcSwap;

/// Host names under which a server may be called, and origins of web pages that may use it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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
pub enum AllowedHosts {
    /// Names of loopback, and these: with a port to allow that port only, otherwise any port.
    Loopback(Vec<String>),
    /// Any name: for a server behind a proxy that checks names.
    Any,
}

/// [`AllowList`] that can be changed while requests are served. Clones share it.
#[derive(Clone, Default)]
pub struct SharedAllowList(Arc<ArcSwap<AllowList>>);

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
