use std::{sync::Arc, time::Duration};

use raw_json::RawJson;
use serde_json::Value;

use crate::Metadata;

/// A tool as data: what a manifest, a registry row or a server's list says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Descriptor {
    /// The name that agents call it by: see [`check_name`](crate::check_name).
    pub name: Arc<str>,
    /// A name for people.
    pub title: Option<String>,
    /// What it does and when to use it.
    pub description: String,
    /// Its version, by convention a semantic one.
    pub version: Option<String>,
    /// The JSON Schema of its arguments.
    pub input_schema: RawJson,
    /// The JSON Schema of its results.
    pub output_schema: Option<RawJson>,
    /// What runs it.
    pub executor: ExecutorSpec,
    /// How long one attempt may take; the default of the configuration if absent.
    pub timeout: Option<Duration>,
    /// What is known of its guarantees, cost and needs.
    pub metadata: Metadata,
    /// The definition as its server lists it, if it comes from one: shown to clients with nothing but the name
    /// changed.
    pub definition: Option<RawJson>,
    /// Where it comes from.
    pub origin: Origin,
}

/// Which primitive runs a tool, and its settings, which only that primitive understands.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutorSpec {
    /// The primitive's kind, such as `http`.
    pub kind: String,
    /// Its settings as written.
    pub config: Value,
}

/// Where a descriptor comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The file with its line, or the server: for messages.
    pub place: String,
    /// How far it is trusted.
    pub trust: Trust,
}

/// How far a descriptor is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trust {
    /// The operator wrote it: it may name environment variables and declare guarantees.
    Operator,
    /// A server sent it: its hints never turn on retry, cache or approval.
    Upstream,
}
