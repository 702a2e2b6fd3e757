//! Executors of code, in a real sandbox.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bash;
mod harness;
mod python;
mod requirements;
mod settings;
mod stream;
