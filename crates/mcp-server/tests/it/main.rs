//! Tests of the transports, with messages as bytes on both sides.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod http_checks;
mod http_eras;
mod http_sessions;
mod http_streams;
mod stdio;
mod support;
