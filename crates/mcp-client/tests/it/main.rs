//! Tests of the client against servers that misbehave in every way known of.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod batches;
mod framing;
mod handshake;
mod hostile;
mod http;
mod notifications;
mod server_requests;
mod sizes;
mod stdio;
mod supervisor;
mod support;
