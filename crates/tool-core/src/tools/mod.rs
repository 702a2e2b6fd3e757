//! Tools: as data, and resolved.

mod builder;
mod call_through;
mod descriptor;
mod executor;
mod metadata;
mod name;
mod pattern;
mod schema;
mod state;
mod tool;

pub use self::{
    builder::ToolBuilder,
    descriptor::{Descriptor, ExecutorSpec, Feature, Origin, Trust},
    executor::{Executor, PrepareError, Provenance},
    metadata::{DataClassification, LatencyClass, Metadata, PiiHandling, RateLimitSettings},
    name::{InvalidName, MAX_NAME, check_name, outward_name},
    pattern::Pattern,
    schema::{AnyJson, CheckError, CheckJson, Mismatch, Problem},
    state::{DisabledTool, ToolState, UpstreamState},
    tool::{Tool, ToolParts},
};
