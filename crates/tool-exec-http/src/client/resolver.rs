use std::{
    error::Error,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use reqwest::dns::{Addrs, Name, Resolving};
use tokio::net::lookup_host;
use tool_core::BoxFuture;

use super::network::AddressPolicy;

/// The port through which host names become addresses.
pub trait Resolve: Send + Sync {
    /// The addresses of a host, best first.
    ///
    /// # Errors
    /// When the name is not known or cannot be looked up.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The operating system's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            Ok(lookup_host((host, 0))
                .await?
                .map(|address| address.ip())
                .collect())
        })
    }
}

/// Why a name may not be connected to: none of its addresses may be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the address is not public")]
pub(crate) struct AddressRefused;

/// A resolver that gives the client only addresses that may be reached. The client connects to what it is given, so
/// nothing can change between the check and the connection.
pub(crate) struct GuardedResolver {
    pub inner: Arc<dyn Resolve>,
    pub reach: Arc<AddressPolicy>,
}

impl reqwest::dns::Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (inner, reach) = (self.inner.clone(), self.reach.clone());
        Box::pin(async move {
            let found = inner.resolve(name.as_str()).await?;
            let n_found = found.len();
            let open: Vec<SocketAddr> = found
                .into_iter()
                .filter(|address| reach.allows(name.as_str(), *address))
                .map(|address| SocketAddr::new(address, 0))
                .collect();
            if open.is_empty() && n_found > 0 {
                return Err(AddressRefused.into());
            }
            Ok(Box::new(open.into_iter()) as Addrs)
        })
    }
}

/// Whether an error is, or comes from, a refused address.
pub(crate) fn is_refused(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<AddressRefused>() {
            return true;
        }
        next = error.source();
    }
    false
}
