//! Tests of the transports, with messages as bytes on both sides.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod batches;
mod http_asking;
mod http_authentication;
mod http_checks;
mod http_cors;
mod http_eras;
mod http_hostile;
mod http_notifications;
mod http_resumption;
mod http_rounds;
mod http_sessions;
mod http_sse;
mod http_streams;
mod http_subscriptions;
mod stdio;
mod stdio_talk;
mod support;
mod tools;
