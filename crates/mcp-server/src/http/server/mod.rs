//! A server of HTTP/1.1 connections.

mod self_wake;
mod serve;
mod watchdog;

pub use self::{
    serve::{ServeOptions, serve_http},
    watchdog::RequestBody,
};
