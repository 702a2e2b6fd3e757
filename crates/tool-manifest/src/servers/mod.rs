//! MCP servers as files describe them.

pub(crate) mod environment;
pub(crate) mod list_limits;
pub(crate) mod sandbox;
pub(crate) mod server;
pub(crate) mod server_health;
pub(crate) mod spec;
pub(crate) mod transport;
