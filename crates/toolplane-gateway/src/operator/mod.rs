//! HTTP API for operators over a Unix socket, and its client.

mod approvals;
mod client;
mod response;
mod server;

pub use self::client::{OperatorClient, OperatorClientError};
