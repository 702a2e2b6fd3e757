//! Servers that the tests talk to.

pub(crate) mod http_server;
pub(crate) mod peer;
