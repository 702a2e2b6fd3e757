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

/// Port that resolves host names.
pub trait Resolve: Send + Sync {
    /// Returns the addresses of a host, preferred ones first.
    ///
    /// # Errors
    /// Returns an error if the name is unknown or the lookup fails.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// Resolver of the operating system.
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

/// Error for a host name of which no address is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the address is not public")]
pub(crate) struct AddressRefused;

/// Resolver that returns only allowed addresses to the client. The client connects to exactly these addresses, so the name
/// cannot be rebound between check and connection (DNS rebinding).
pub(crate) struct GuardedResolver {
    pub inner: Arc<dyn Resolve>,
    pub policy: Arc<AddressPolicy>,
}

impl reqwest::dns::Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (inner, policy) = (self.inner.clone(), self.policy.clone());
        Box::pin(async move {
            let found = inner.resolve(name.as_str()).await?;
            let n_found = found.len();
            let open: Vec<SocketAddr> = found
                .into_iter()
                .filter(|address| policy.allows(name.as_str(), *address))
                .map(|address| SocketAddr::new(address, 0))
                .collect();
            if open.is_empty() && n_found > 0 {
                return Err(AddressRefused.into());
            }
            Ok(Box::new(open.into_iter()) as Addrs)
        })
    }
}

/// Returns `true` if an error is, or is caused by, an address that is not allowed.
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
