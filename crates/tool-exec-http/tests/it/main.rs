//! HTTP tools against a server on loopback.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alone;
mod dispatch;
mod idempotency;
mod limits;
mod network;
mod operations;
mod preview;
mod promptkit;
mod request;
mod response;
mod secrets;
mod server;
mod settings;
mod stream;
mod support;
mod traffic;
