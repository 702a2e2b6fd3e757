use std::{fmt, ops::Deref, sync::Arc};

use arc_swap::ArcSwap;

/// By which names a server may be called, and which web pages may use it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowList {
    /// The names by which the server may be called. A web page whose name was bound to this machine's address calls it by
    /// another name, and is refused.
    pub hosts: AllowedHosts,
    /// The origins of web pages that may use the server and read its answers (CORS), such as `https://example.com`,
    /// besides the server's own. Another port of loopback is another origin.
    pub origins: Vec<String>,
}

/// The names by which a server may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedHosts {
    /// The names of loopback, and these: with a port to allow that port only, else any port.
    Loopback(Vec<String>),
    /// Any name: for a server behind a proxy that checks it.
    Any,
}

/// What is allowed now, and can be changed while requests are served. Clones share it.
#[derive(Clone, Default)]
pub struct SharedAllowList(Arc<ArcSwap<AllowList>>);

impl Default for AllowedHosts {
    fn default() -> Self {
        Self::Loopback(Vec::new())
    }
}

impl SharedAllowList {
    /// Begins with this.
    #[must_use]
    pub fn new(allowed: AllowList) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(allowed)))
    }

    /// What is allowed now.
    #[must_use]
    pub fn load(&self) -> impl Deref<Target = Arc<AllowList>> + use<> {
        self.0.load()
    }

    /// Allows this instead, from the next request on. Sessions and streams that are open stay so; what comes for them next is
    /// judged by this.
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
