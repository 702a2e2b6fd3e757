//! The server: its lifecycle, the loading of its lists, and its view as a source.

mod idle_timeout;
mod lifecycle;
mod load_lists;
mod mcp_server;
mod source;

pub(crate) use self::lifecycle::ServerLifecycle;
pub use self::mcp_server::McpServer;
