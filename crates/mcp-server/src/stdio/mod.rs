//! The stdio transport: one message per line.

mod connection;
mod options;
mod serve;
mod session_info;
mod writer;

pub use self::{options::StdioOptions, serve::serve_stdio};
pub(crate) use self::{serve::serve_connection, session_info::SessionInfo};
