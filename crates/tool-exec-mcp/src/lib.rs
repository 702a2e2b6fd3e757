//! Tools, prompts and resources of MCP servers: found on the server's own lists, named by one rule, and called with
//! arguments and results untouched.
//!
//! An [`McpServer`] is a [`tool_core::Source`] of them; [`McpExecutor`] runs them, and also tools of a manifest that
//! name a server and one of its tools. A server is started by the first thing that needs it, once however many do.
//!
//! # Names
//! A tool or prompt is shown as the server's prefix (its name and `__` unless told otherwise) followed by its own
//! name, or the one a tool was renamed to, brought into the alphabet and length of [`tool_core::outward_name`].
//! Resources and templates keep their URIs. What the configuration includes and excludes goes by own names and URIs.
//!
//! # Kept lists
//! With a [`ListCache`], the last lists of each server are kept between runs ([`McpServer::cache_lists`]) and offered before
//! the server runs. The lists of a server that was started replace them.
//!
//! # Tasks
//! A tool of a legacy server that can be called as a task only (`taskSupport: required`) is called like any other:
//! the task is made and followed here. Its definition says `optional` instead, since that is what holds for our
//! callers. The same is done for a modern server that refuses a call for want of the tasks extension. A caller that
//! follows tasks itself gets [`Outcome::Task`](tool_core::Outcome::Task) where the server makes one, and asks about it
//! on the connection that it was made on.

mod addressees;
mod asking;
mod call;
mod calls;
mod connections;
mod definitions;
mod describe;
mod drive;
mod executor;
mod fault;
mod freshness;
mod idle;
mod kept;
mod kept_lists;
mod life;
mod line;
mod list_store;
mod list_warnings;
mod listing;
mod own_connections;
mod own_listing;
mod own_lists;
mod own_subscriptions;
mod pace;
mod place;
mod pool;
mod preview;
mod queue;
mod server;
mod settings;
mod subscriptions;
mod task;
mod task_progress;
mod updates;

pub use mcp_client::{EraChoice, HealthCheck, ServerInfo, StartLimit};

pub use self::{
    executor::McpExecutor,
    list_store::{FileListCache, CachedLists, ListCacheKey, ListCache, MemoryListCache},
    server::McpServer,
    settings::{HttpTransport, Isolation, KeyPlace, NETWORK_VARIABLES, ServerSettings, ServerTarget},
};
