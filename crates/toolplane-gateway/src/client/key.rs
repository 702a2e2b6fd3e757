//! Keys that tell the clients of the gateway apart.

use mcp_server::{Peer, RequestContext};
use toolplane::core::{ClientCapabilities, ClientKey};

/// Returns the key of the client of a request: its connection or session, or its principal if requests belong to neither.
pub(crate) fn client_key(cx: &RequestContext) -> ClientKey {
    match cx.connection_name() {
        Some(name) => ClientKey::Session(name.clone()),
        None => ClientKey::Principal(cx.principal().name().clone()),
    }
}

/// Returns the key of a peer. It equals [`client_key`] of the peer's requests.
pub(super) fn peer_key(peer: &Peer) -> ClientKey {
    match peer.connection {
        Some(number) => connection_key(number),
        None => ClientKey::Principal(peer.principal.name().clone()),
    }
}

/// Returns the key of the client with this connection or session.
pub(crate) fn connection_key(number: u64) -> ClientKey {
    ClientKey::Session(number.to_string().into())
}

/// Returns the number of a client's connection or session, or `None` if it has neither.
pub(crate) fn connection_of(client: &ClientKey) -> Option<u64> {
    match client {
        ClientKey::Session(name) => name.parse().ok(),
        _ => None,
    }
}

/// Returns the questions that the client of a request declared to answer.
pub(crate) fn declared_capabilities(cx: &RequestContext) -> ClientCapabilities {
    let declared = cx.client_capabilities();
    declared
        .as_ref()
        .map(ClientCapabilities::from_json)
        .unwrap_or_default()
}
