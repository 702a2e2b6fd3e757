//! Executor and source for MCP servers: lists their tools, prompts and resources, names them by one rule, and calls
//! them with arguments and results untouched.
//!
//! An [`McpServer`] is a [`tool_core::Source`] of them. [`McpExecutor`] runs them, and also tools of a manifest that
//! name a server and one of its tools. The first use starts a server; concurrent uses share one start.
//!
//! # Examples
//!
//! The crate alone: the tools of one server are listed, and one of them is called.
//!
//! ```
//! use std::sync::Arc;
//!
//! use tool_core::{Arguments, CallContext, Executor, NoSecrets, Template, Tool, ToolBuilder, serde_json::json};
//! use tool_core::{Invoke, TargetBackend};
//! use tool_exec_mcp::{HttpTarget, McpExecutor, McpServer, ServerSettings};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let forecast = mcp_mock::MockTool::new("forecast").reply(mcp_mock::MockReply::text("sunny"));
//! # let http = mcp_mock::MockServer::builder().tool(forecast).build().http().await?;
//! # let url = http.url();
//! let target = HttpTarget::new(Template::parse(&url)?);
//! let server = McpServer::new(ServerSettings::new("weather", target), Arc::new(NoSecrets));
//! let executor = McpExecutor::new([server.clone()]);
//!
//! let source = server.source();
//! source.load().await;
//! let tools = source.snapshot().tools.clone();
//! assert_eq!(&*tools[0].name, "weather__forecast");
//!
//! let backend = executor.prepare(&tools[0]).map_err(|problems| format!("{problems:?}"))?;
//! let tool: Arc<Tool> = ToolBuilder::from_descriptor((*tools[0]).clone()).run_on_dyn(backend);
//! let mut call = CallContext::local(&tool, Arguments::from_serialize(&json!({"city": "Riga"}))?);
//! let reply = TargetBackend.invoke(&mut call).await?.into_reply()?;
//! assert_eq!(reply.text(), "sunny");
//! server.shutdown().await;
//! # Ok(())
//! # }
//! ```
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
mod env_file;
mod errors;
mod executor;
mod listing;
mod notifications;
mod sandbox;
mod server;
mod settings;
mod target;
mod tasks;
mod timer;

pub use mcp_client::{EraChoice, HealthCheck, ServerInfo, ServerStatus, StartLimit};
#[doc(no_inline)]
pub use {mcp_client, tool_core};

pub use self::{
    executor::McpExecutor,
    listing::{CachedLists, FileListCache, ListCache, ListCacheKey, MemoryListCache, PrivateFolder},
    sandbox::{ServerSandbox, ServerSandboxLevel},
    server::McpServer,
    settings::{Isolation, KeyPlace, ServerSettings},
    target::{HttpTarget, HttpTransport, NETWORK_VARIABLES, ServerTarget, StdioTarget},
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
