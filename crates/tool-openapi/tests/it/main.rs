//! Imports of real and made documents, and the requests of the tools.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bodies;
mod credentials;
mod documents;
mod hostile;
mod loopback;
mod names;
mod parameters;
mod schemas;
mod selection;
mod servers;
mod support;
