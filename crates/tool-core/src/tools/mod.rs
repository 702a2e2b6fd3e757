//! Tools: as data, and resolved.

mod builder;
mod call_through;
mod descriptor;
mod executor;
mod file_path;
mod metadata;
mod name;
mod or_default;
mod pattern;
mod reach;
mod state;
mod tool;

pub use self::{
    builder::ToolBuilder,
    descriptor::{Descriptor, ExecutorSpec, Feature, Origin, Trust},
    executor::{Executor, PrepareError, Provenance},
    file_path::is_relative_path,
    metadata::{
        DataClassification, ExampleCall, ExpectedResult, LatencyClass, Metadata, PiiHandling,
        RateLimitSettings,
    },
    name::{InvalidName, MAX_NAME, check_name, outward_name},
    or_default::{OrDefault, StaticDefault},
    pattern::Pattern,
    reach::{Reach, SecretUse},
    state::{DisabledTool, ToolState, UpstreamState},
    tool::{Tool, ToolParts},
};
