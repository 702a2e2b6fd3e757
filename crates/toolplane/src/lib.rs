//! Governed set of tools for agents: mock tools, HTTP APIs, code, containers, and the tools of MCP servers and command endpoints, described by data. Every call
//! passes the same layers.
//!
//! # Examples
//! ```
//! use std::time::Duration;
//! use toolplane::{CallRequest, Toolplane};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
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
//! let outcome = plane.call(request).await?;
//! println!("{}", outcome.into_reply()?.text()); // {"city": "Oslo", "sky": "clear"}
//! # plane.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! [`Toolplane::call_json`] takes typed arguments and returns a typed reply. An outcome that is no reply, such as a call that
//! waits for an approval, is an error of [`Outcome::into_reply`](tool_core::Outcome::into_reply). A program adds executors,
//! sources, layers, observers and storage of its own with the [`Builder`].
//!
//! # Features
//! One for each executor (`exec-mock`, `exec-http`, `exec-mcp`, `exec-script` for code, `exec-container` for containers, and `exec-endpoint` for command endpoints), `sandbox` for servers that are programs, `outbound` for webhooks and health check endpoints, `otel`
//! for spans and metrics by the OpenTelemetry providers that the program sets, and `full` for all of these, which is the
//! default. `workflows` adds tools that are made of calls of other tools, `routes` tools that choose another tool at call time, `agent` the formats of providers of language models, `websocket` servers that are reached over WebSocket, and `embed-local` embeddings by a model in a directory. Each works alone; a configuration that needs a feature
//! which the build lacks is refused with [`BuildError::LeftOut`].
// The future of the stack nests the futures of all layers, deeper than the usual 128.
#![recursion_limit = "256"]

#[cfg(feature = "agent")]
mod agents;
mod authoring;
mod build;
mod callers;
mod calls;
mod discovery;
#[cfg(feature = "exec-endpoint")]
mod endpoint;
mod host;
pub mod manifest;
mod operate;
mod outgoing;
mod plane;
mod sections;
mod stack;

pub use tokio;
#[cfg(feature = "agent")]
pub use tool_agent as agent;
#[cfg(feature = "catalog")]
pub use tool_catalog as catalog;
pub use tool_chaos as faults;
pub use tool_core::{self as core, RawJson, raw_json, serde_json};
#[cfg(feature = "exec-mcp")]
pub use tool_exec_mcp::{
    CachedLists, FileListCache, ListCache, ListCacheKey, MemoryListCache, PrivateFolder,
};
#[cfg(feature = "workflows")]
pub use tool_flow as flow;
pub use tool_observe as observe;
pub use tool_policy as policy;
pub use tool_registry::{
    self as registry, InstalledKind, LockDrift, LockFile, LockFilePins, MemoryPins, Pin, PinKey, PinSet,
    Pins, PinsError, RefusedFeature, WithheldDefinition,
};
#[cfg(feature = "routes")]
pub use tool_route as route;
pub use tool_runtime as runtime;
pub use tool_scan::escape_for_model;
pub use tool_search as search;
pub use tool_settings as settings;
#[cfg(feature = "store-files")]
pub use tool_store_files as store_files;
#[cfg(feature = "store-postgres")]
pub use tool_store_postgres as store_postgres;
#[cfg(feature = "store-sqlite")]
pub use tool_store_sqlite as store_sqlite;

#[cfg(feature = "agent")]
pub use self::agents::ConversationTools;
#[cfg(all(feature = "agent", feature = "outbound"))]
pub use self::agents::{HttpModel, HttpModelSettings};
#[cfg(feature = "exec-mcp")]
pub use self::build::list_store::StoredListCache;
#[cfg(feature = "exec-container")]
pub use self::host::containers::container_engine;
#[cfg(feature = "exec-script")]
pub use self::host::scripts::{is_locked, lock_requirements};
pub use self::{
    authoring::{
        Authoring, AuthoringError, DraftMode, DraftProblem, DraftReport, DraftRequest, ExampleOutcome,
        TestReport,
    },
    build::{builder::Builder, chaos::chaos_plan, error::BuildError, executors::config_schema},
    callers::principals::UndefinedRole,
    calls::{
        call::ExplainedCall,
        listing::{Listing, MissingServer},
        request::CallRequest,
        turn::Turn,
        view::View,
    },
    discovery::{FoundTool, FoundTools},
    host::{layers::Place, stored_manifests::StoredManifests},
    operate::{
        callbacks::{CallbackDelivery, InvalidCallbackUrl},
        checks::CheckOutcome,
        health::Readiness,
        idle_rules::IdleRule,
        usage::{CacheUse, ConnectionUse, HttpUse},
    },
    plane::{Toolplane, WeakToolplane},
    sections::sections,
    stack::LAYERS,
};
#[cfg(feature = "exec-endpoint")]
pub use self::{endpoint::EndpointService, host::endpoints::endpoint_facts};

/// Compiles and runs the example of the README.
#[cfg(all(doctest, feature = "exec-mock"))]
#[doc = include_str!("../README.md")]
struct Readme;
