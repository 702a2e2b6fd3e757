//! Servers for the tests.

#[cfg(feature = "stdio")]
pub(crate) mod fixture;
#[cfg(feature = "http")]
pub(crate) mod http_server;
#[cfg(any(feature = "stdio", feature = "http"))]
pub(crate) mod memory;
pub(crate) mod peer;
