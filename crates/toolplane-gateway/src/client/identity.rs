//! Identities by which servers know the clients of the gateway.

use std::sync::Arc;

use mcp_server::{Peer, Principal};
use toolplane::{
    Toolplane, WeakToolplane,
    core::{Caller, ClientCapabilities, ClientGroup, ClientIdentity},
};

use super::key::peer_key;

/// Principal of clients that were not identified.
pub(crate) const ANONYMOUS: &str = "anonymous";

/// Returns the caller, with its permissions and limits, that a principal acts as.
pub type CallerResolver = Arc<dyn Fn(&Principal) -> Arc<Caller> + Send + Sync>;

/// Identifies clients for parts of the gateway that outlive a request.
pub(crate) struct ClientIdentities {
    /// Weak, since the toolplane owns the notification router, which owns this.
    plane: WeakToolplane,
    resolver: Option<CallerResolver>,
}

impl ClientIdentities {
    pub(crate) fn new(plane: &Toolplane, resolver: Option<CallerResolver>) -> Self {
        Self {
            plane: plane.downgrade(),
            resolver,
        }
    }

    /// Returns `true` if a client belongs to a group, and `false` once the toolplane has ended.
    pub(crate) fn is_in(&self, peer: &Peer, clients: &ClientGroup) -> bool {
        self.identify(peer)
            .is_some_and(|client| clients.includes(&client))
    }

    /// Returns the identity of a client, or `None` once the toolplane has ended.
    fn identify(&self, peer: &Peer) -> Option<ClientIdentity> {
        let plane = self.plane.upgrade()?;
        let caller = resolve_caller(&plane, self.resolver.as_ref(), &peer.principal);
        Some(client_identity(peer, &caller))
    }
}

/// Returns the caller that a principal acts as.
pub(crate) fn resolve_caller(
    plane: &Toolplane,
    resolver: Option<&CallerResolver>,
    principal: &Principal,
) -> Arc<Caller> {
    if let Some(resolver) = resolver {
        return resolver(principal);
    }
    match principal.claims::<Caller>() {
        Some(caller) => caller,
        None => plane.caller(principal.as_str()),
    }
}

/// Returns the identity of a client that acts for this caller.
pub(crate) fn client_identity(peer: &Peer, caller: &Caller) -> ClientIdentity {
    let declared = peer.capabilities.as_ref();
    let capabilities = declared.map(ClientCapabilities::from_json).unwrap_or_default();
    let key = peer_key(peer);
    ClientIdentity::new(None, Some(&key), capabilities, caller)
}
