//! Tools of MCP servers: found on the server's own list, named by one rule, and called with arguments and results
//! untouched.
//!
//! An [`McpServer`] is a [`tool_core::Source`] of tools; [`McpExecutor`] runs them, and also tools of a manifest that
//! name a server and one of its tools. A server is started by the first thing that needs it, once however many do.
//!
//! # Names
//! A tool is shown as the server's prefix (its name and `__` unless told otherwise) followed by its own name or the
//! one it was renamed to, brought into the alphabet and length of [`tool_core::outward_name`].

mod call;
mod connections;
mod describe;
mod executor;
mod fault;
mod server;
mod settings;

pub use mcp_client::EraChoice;

pub use self::{
    executor::McpExecutor,
    server::McpServer,
    settings::{ServerSettings, ServerTarget},
};
