//! The set of tools as a command endpoint: requests of the protocol, answered by calls of the toolplane.

mod description;
mod service;

pub use self::service::EndpointService;
