//! Tests of the sandbox with real processes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod basics;
mod escapes;
mod network;
mod support;
mod users;
