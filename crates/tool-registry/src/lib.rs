//! Registry of tools: sources, names, resolution into ready tools, snapshots.
//!
//! A [`Registry`] takes descriptors from its sources (files, MCP servers), resolves them into ready [`tool_core::Tool`]s and
//! holds the result as one immutable [`Snapshot`], so that a call only looks up a name in a map. A source is loaded when
//! something that it may hold is requested. If it fails, its tools are missing with the reason, and all others are available.
//!
//! # Examples
//! ```
//! use tool_registry::{FixedSource, Registry, RegistryParts};
//! # use std::sync::Arc;
//!
//! let registry = Registry::new(RegistryParts {
//!     sources: vec![Arc::new(FixedSource::new("configuration", Vec::new()))],
//!     ..RegistryParts::default()
//! });
//! assert!(registry.get("search").is_none());
//! assert!(registry.snapshot().tools().is_empty());
//! ```

mod client_snapshots;
mod fixed_source;
mod follow;
mod log;
mod look_alikes;
mod namespaces;
mod registry;
mod resolve;
mod snapshot;

pub use self::{
    fixed_source::FixedSource,
    registry::{Registry, RegistryParts},
    snapshot::{RefusedFeature, Snapshot},
};
