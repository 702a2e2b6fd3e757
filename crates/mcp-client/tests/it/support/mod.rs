//! Servers for the tests.

#[cfg(feature = "stdio")]
pub(crate) mod fixture;
#[cfg(feature = "http")]
pub(crate) mod http_server;
pub(crate) mod peer;
