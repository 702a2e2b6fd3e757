//! The client of a connection or a request, and the channels to it.

pub(crate) mod capabilities;
mod client_handle;
mod client_requests;
mod connection_handle;
mod event_sender;
mod legacy_client;
mod peer;
mod principal;
mod progress;

pub use self::{
    client_handle::ClientHandle, client_requests::ClientRequestError, peer::Peer, principal::Principal,
    progress::ProgressReporter,
};
pub(crate) use self::{
    connection_handle::ConnectionHandle,
    event_sender::{EventSender, Outgoing},
    legacy_client::LegacyClient,
};
