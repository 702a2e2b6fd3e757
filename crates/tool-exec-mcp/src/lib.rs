//! Executor and source for MCP servers: lists their tools, prompts and resources, names them by one rule, and calls
//! them with arguments and results untouched.
//!
//! An [`McpServer`] is a [`tool_core::Source`] of them. [`McpExecutor`] runs them, and also tools of a manifest that
//! name a server and one of its tools. The first use starts a server; concurrent uses share one start.
//!
//! # Names
//! The outward name of a tool or prompt is the server's prefix (its name and `__` by default) followed by its name at
//! the server, or by the name that a tool was renamed to, brought into the alphabet and length of
//! [`tool_core::outward_name`]. Resources and templates keep their URIs. `include` and `exclude` match names at the
//! server and URIs.
//!
//! # Cached lists
//! With a [`ListCache`], the last lists of each server are stored between runs ([`McpServer::cache_lists`]) and offered
//! before the server runs. Once a server was started, its own lists replace them.
//!
//! # Tasks
//! A tool of a legacy server that can be called as a task only (`taskSupport: required`) is called like any other: the
//! task is created and followed here. Its definition says `optional` instead, since that holds for our callers. The
//! same happens if a modern server refuses a call that lacks the tasks extension. A caller that follows tasks itself
//! gets [`Outcome::Task`](tool_core::Outcome::Task) if the server creates one, and polls it on the connection that it
//! was created on.

mod calls;
mod connection;
mod errors;
mod executor;
mod listing;
mod notifications;
mod server;
mod settings;
mod tasks;
mod timer;

pub use mcp_client::{EraChoice, HealthCheck, ServerInfo, StartLimit};

pub use self::{
    executor::McpExecutor,
    listing::{CachedLists, FileListCache, ListCache, ListCacheKey, MemoryListCache},
    server::McpServer,
    settings::{HttpTransport, Isolation, KeyPlace, NETWORK_VARIABLES, ServerSettings, ServerTarget},
};
