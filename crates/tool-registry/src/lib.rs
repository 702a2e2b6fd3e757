//! Which tools there are. A [`Registry`] takes descriptors from its sources (files, MCP servers), resolves them into
//! ready [`tool_core::Tool`]s and holds the result as one immutable [`Snapshot`], so that a call looks up a name in
//! a map and nothing else. Sources are loaded when someone asks for what they may hold; one that fails is missing
//! with its reason, and the rest is there.

mod clients;
mod first_loads;
mod fixed;
mod follow;
mod log;
mod look_alikes;
mod namespaces;
mod registry;
mod resolve;
mod snapshot;

pub use self::{
    fixed::FixedSource,
    registry::{Registry, RegistryParts},
    snapshot::{RefusedFeature, Snapshot},
};
