//! Servers as sources of tools, and calls of what they offer.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod beside_tools;
mod calls;
mod fixture;
mod http;
mod lifecycle;
mod modern;
mod names;
mod tasks;
