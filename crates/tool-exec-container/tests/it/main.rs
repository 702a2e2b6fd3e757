//! Containers as tools: settings, the requests to a fake engine, and real engines.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod engines;
mod escapes;
mod fake;
mod harness;
mod requests;
mod settings;
