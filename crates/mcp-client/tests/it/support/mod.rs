//! Servers for the tests.

pub(crate) mod http_server;
pub(crate) mod peer;
