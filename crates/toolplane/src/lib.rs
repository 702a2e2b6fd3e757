//! One governed set of tools for agents: mock tools, HTTP APIs and the tools of MCP servers, described by data, and
//! every call down the same layers.
//!
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
//! One for each executor (`exec-mock`, `exec-http`, `exec-mcp`), `outbound` for webhooks and health check endpoints, `otel` for
//! spans and metrics by the providers of OpenTelemetry that the program sets, and `full` for all of these, which is the default.
//! Each works alone.

mod builder;
mod chaos;
mod checks;
mod error;
mod executors;
mod gate;
mod health;
mod health_page;
mod hooks;
mod idle_rules;
mod instructions;
#[cfg(feature = "exec-mcp")]
mod list_store;
mod listing;
pub mod manifest;
mod news;
#[cfg_attr(not(feature = "outbound"), path = "no_outbound.rs")]
mod outbound;
mod plane;
mod policies;
mod records;
mod reload;
mod request;
mod required;
mod sections;
mod stack;
mod switches;
mod telemetry;
mod turn;
mod usage;
mod view;
mod views;

pub use raw_json::RawJson;
pub use tool_chaos as faults;
pub use tool_core as core;
#[cfg(feature = "exec-mcp")]
pub use tool_exec_mcp::{FileListStore, KeptLists, ListKey, ListStore, MemoryListStore};
pub use tool_observe as observe;
pub use tool_policy as policy;
pub use tool_runtime as runtime;
pub use tool_settings as settings;

pub use self::{
    builder::Builder,
    chaos::chaos_plan,
    checks::Checked,
    error::BuildError,
    executors::config_schema,
    health::Readiness,
    idle_rules::IdleRule,
    listing::{Listing, MissingServer},
    plane::{Explained, Toolplane, WeakToolplane},
    request::CallRequest,
    sections::sections,
    stack::LAYERS,
    turn::Turn,
    usage::{CacheUse, ConnectionUse, HttpUse},
    view::View,
};
