//! A server of HTTP/1.1 connections.

mod options;
mod self_wake;
mod serve;
mod watchdog;

pub use self::{options::ServeOptions, serve::serve_http, watchdog::RequestBody};
