//! HTTP clients: connections, name resolution, and the addresses that they may connect to.

mod clients;
mod marking_body;
mod network;
mod resolver;
mod traffic;

pub(crate) use self::{
    clients::{AGENT, ClientKey, Clients},
    marking_body::MarkingBody,
    network::AddressPolicy,
    resolver::is_refused,
    traffic::UpstreamTraffic,
};
pub use self::{
    network::{Network, NetworkError},
    resolver::{Resolve, SystemResolver},
    traffic::Traffic,
};
