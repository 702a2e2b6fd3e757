//! Governed set of tools for agents: mock tools, HTTP APIs and the tools of MCP servers, described by data. Every call
//! passes the same layers.
//!
//! # Examples
//! ```
//! use std::time::Duration;
//! use toolplane::{CallRequest, Toolplane};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let plane = Toolplane::from_yaml(
//!     r#"
//! tools:
//!   weather:
//!     description: The weather somewhere.
//!     input_schema: {type: object, properties: {city: {type: string}}, required: [city]}
//!     executor: {kind: mock, template: '{"city": {{ city }}, "sky": "clear"}'}
//! "#,
//! )?;
//! let request = CallRequest::new("weather").json(r#"{"city": "Oslo"}"#)?.deadline(Duration::from_secs(5));
//! let reply = plane.call(request).await?;
//! println!("{reply:?}");
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//! One for each executor (`exec-mock`, `exec-http`, `exec-mcp`), `outbound` for webhooks and health check endpoints, `otel`
//! for spans and metrics by the OpenTelemetry providers that the program sets, and `full` for all of these, which is the
//! default. Each works alone.
// The future of the stack nests the futures of all layers, deeper than the usual 128.
#![recursion_limit = "256"]

mod build;
mod calls;
pub mod manifest;
mod operate;
mod outgoing;
mod plane;
mod sections;
mod stack;

pub use raw_json::RawJson;
pub use tool_chaos as faults;
pub use tool_core as core;
#[cfg(feature = "exec-mcp")]
pub use tool_exec_mcp::{CachedLists, FileListCache, ListCache, ListCacheKey, MemoryListCache};
pub use tool_observe as observe;
pub use tool_policy as policy;
pub use tool_runtime as runtime;
pub use tool_settings as settings;

pub use self::{
    build::{builder::Builder, chaos::chaos_plan, error::BuildError, executors::config_schema},
    calls::{
        listing::{Listing, MissingServer},
        request::CallRequest,
        turn::Turn,
        view::View,
    },
    operate::{
        checks::CheckOutcome,
        health::Readiness,
        idle_rules::IdleRule,
        usage::{CacheUse, ConnectionUse, HttpUse},
    },
    plane::{ExplainedCall, Toolplane, WeakToolplane},
    sections::sections,
    stack::LAYERS,
};
