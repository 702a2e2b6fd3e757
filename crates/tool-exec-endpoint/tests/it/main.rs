//! Tests of endpoints, with real programs.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod calls;
mod envelopes;
mod harness;
mod lists;
mod settings;
