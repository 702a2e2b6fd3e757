//! Tests of the client against servers that misbehave in every way known of.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[cfg(feature = "http")]
mod batches;
#[cfg(feature = "http")]
mod framing;
mod handshake;
mod hostile;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod notifications;
#[cfg(feature = "http")]
mod server_requests;
#[cfg(feature = "http")]
mod sizes;
mod stdio;
#[cfg(feature = "stdio")]
mod supervisor;
mod support;
mod tool_calls;
