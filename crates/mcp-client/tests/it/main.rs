//! Tests of the client against servers that misbehave in every way known of.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod asked;
mod batches;
mod events;
mod framing;
mod hostile;
mod http;
mod http_server;
mod opening;
mod peer;
mod processes;
mod sizes;
mod sse;
mod supervised;
#[cfg(feature = "websocket")]
mod websocket;
mod writing;
