//! The stdio transport: one message per line.

mod connection;
mod options;
mod session_info;
mod writer;

pub(crate) use self::{connection::serve_connection, session_info::SessionInfo};
pub use self::{connection::serve_stdio, options::StdioOptions};
