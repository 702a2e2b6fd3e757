use std::{sync::Arc, time::Duration};

use raw_json::RawJson;
use serde_json::Value;

use crate::{Metadata, Overrides};

/// A tool as data: what a manifest, a registry row or a server's list says of it. Prompts and resources of servers are
/// described in the same way: see [`Feature`].
#[derive(Debug, Clone, PartialEq)]
pub struct Descriptor {
    /// What it describes.
    pub feature: Feature,
    /// The name that agents call it by, and that policy rules speak of: see [`check_name`](crate::check_name). That of
    /// a resource or template is its server's prefix and its URI.
    pub name: Arc<str>,
    /// The URI of a resource, or the URI template (RFC 6570) of a template.
    pub uri: Option<Arc<str>>,
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
    /// What the operator set for it in the place of the defaults.
    pub overrides: Overrides,
    /// The definition as its server lists it, if it comes from one: shown to clients with nothing but the name
    /// changed.
    pub definition: Option<RawJson>,
    /// Where it comes from.
    pub origin: Origin,
}

/// Which kind of thing a descriptor describes. Calls of all of them go down the same layers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Feature {
    /// A tool, which is called.
    #[default]
    Tool,
    /// A prompt of a server, which is rendered.
    Prompt,
    /// A resource of a server, which is read.
    Resource,
    /// A family of resources of a server.
    ResourceTemplate,
}

impl Feature {
    /// All of them, in the order in which lists show them.
    pub const ALL: [Self; 4] = [Self::Tool, Self::Prompt, Self::Resource, Self::ResourceTemplate];

    /// The word for one of it in messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::ResourceTemplate => "resource template",
        }
    }
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
