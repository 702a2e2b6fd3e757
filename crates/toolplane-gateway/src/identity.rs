//! The identities by which servers know the clients of the gateway.

use std::sync::Arc;

use mcp_server::{Peer, Principal};
use toolplane::{
    Toolplane, WeakToolplane,
    core::{Caller, ClientCapabilities, ClientGroup, ClientIdentity},
};

use crate::{client, gateway::Callers};

/// The principal of those whom nobody has identified.
pub(crate) const ANONYMOUS: &str = "anonymous";

/// Identifies clients for whoever outlives their requests.
pub(crate) struct Identities {
    /// Weak: the toolplane has what holds this.
    plane: WeakToolplane,
    callers: Option<Callers>,
}

impl Identities {
    pub(crate) fn new(plane: &Toolplane, callers: Option<Callers>) -> Self {
        Self {
            plane: plane.downgrade(),
            callers,
        }
    }

    /// The identity of a client, unless the gateway has ended.
    pub(crate) fn of(&self, peer: &Peer) -> Option<ClientIdentity> {
        let caller = caller(&self.plane.upgrade()?, self.callers.as_ref(), &peer.principal);
        Some(identity(peer, &caller))
    }

    /// Returns `true` if a client is one of these.
    pub(crate) fn is_in(&self, peer: &Peer, clients: &ClientGroup) -> bool {
        self.of(peer).is_some_and(|client| clients.includes(&client))
    }
}

/// The caller that a principal is.
pub(crate) fn caller(plane: &Toolplane, callers: Option<&Callers>, principal: &Principal) -> Arc<Caller> {
    if let Some(callers) = callers {
        return callers(principal);
    }
    match principal.as_str() {
        "local" => plane.local_caller(),
        ANONYMOUS => plane.anonymous_caller(),
        other => Arc::new(Caller::new(other)),
    }
}

/// The identity of a client that acts for this caller.
pub(crate) fn identity(peer: &Peer, caller: &Caller) -> ClientIdentity {
    let declared = peer.capabilities.as_ref();
    let capabilities = declared.map(ClientCapabilities::from_json).unwrap_or_default();
    let key = client::key_of(peer);
    ClientIdentity::new(None, Some(&key), capabilities, caller)
}
