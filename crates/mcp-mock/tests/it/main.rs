//! The mock server from the view of its clients.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod asking;
mod broken_http;
mod broken_news;
mod broken_stdio;
mod eras;
mod features;
mod guide;
mod scenario;
mod support;
mod told;
mod tool_results;
