//! HTTP tools against a server on loopback.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod request;
mod server;
mod support;
