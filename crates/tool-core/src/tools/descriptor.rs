use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
    time::Duration,
};

use bytes::Bytes;
use raw_json::RawJson;
use serde_json::Value;

use crate::{Metadata, OrDefault, Overrides, SecretUse};

/// Tool as data, as a manifest, a registry row or a server's list describes it. Prompts and resources of servers have
/// descriptors as well: see [`Feature`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Descriptor {
    /// Kind of the described item.
    pub feature: Feature,
    /// Name that agents and policy rules use: see [`check_name`](crate::check_name). The name of a resource or
    /// template is its server's prefix and its URI.
    pub name: Arc<str>,
    /// Other names of the same tool: policy rules for any of them apply to it. An alias has the name of its tool here.
    pub policy_names: Vec<Arc<str>>,
    /// URI of a resource, or URI template (RFC 6570).
    pub uri: Option<Arc<str>>,
    /// Name for people.
    pub title: Option<String>,
    /// Description: what the tool does and when to use it.
    pub description: String,
    /// Version, by convention a semantic version.
    pub version: Option<String>,
    /// JSON Schema of the arguments.
    pub input_schema: RawJson,
    /// JSON Schema of the results.
    pub output_schema: Option<RawJson>,
    /// Kind and settings of the executor.
    pub executor: ExecutorSpec,
    /// Files that are part of the tool, such as its code, by their relative paths: see
    /// [`is_relative_path`](crate::is_relative_path). They are read once, when the tool is loaded.
    pub files: BTreeMap<String, Bytes>,
    /// Time limit of one attempt; the default of the configuration if absent.
    pub timeout: Option<Duration>,
    /// Guarantees, cost and requirements.
    pub metadata: OrDefault<Metadata>,
    /// Settings of the operator that override the defaults.
    pub overrides: Overrides,
    /// Definition as its server lists it, if it comes from a server. Clients receive it with only the name changed.
    pub definition: Option<RawJson>,
    /// Origin and trust.
    pub origin: Origin,
}

impl Descriptor {
    /// Describes a tool that the program itself adds: without description, with any arguments, default settings and the
    /// operator's trust. Assign the fields that differ.
    ///
    /// # Examples
    /// ```
    /// use tool_core::{Descriptor, ExecutorSpec, serde_json::json};
    ///
    /// let executor = ExecutorSpec::new("mock").with_config(json!({"result": "done"}));
    /// let mut tool = Descriptor::new("job", executor);
    /// tool.description = "Does the job.".to_owned();
    /// ```
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, executor: ExecutorSpec) -> Self {
        Self {
            feature: Feature::Tool,
            name: name.into(),
            policy_names: Vec::new(),
            uri: None,
            title: None,
            description: String::new(),
            version: None,
            input_schema: ANY_OBJECT.clone(),
            output_schema: None,
            executor,
            files: BTreeMap::new(),
            timeout: None,
            metadata: OrDefault::default(),
            overrides: Overrides::default(),
            definition: None,
            origin: Origin::operator("the program"),
        }
    }
}

/// Schema of any arguments.
static ANY_OBJECT: LazyLock<RawJson> = LazyLock::new(|| {
    let text = Bytes::from_static(br#"{"type":"object"}"#);
    RawJson::parse(text).expect("it is JSON")
});

impl ExecutorSpec {
    /// Names an executor without settings.
    #[must_use]
    pub fn new(kind: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            config: Value::Object(serde_json::Map::new()),
        }
    }

    /// Sets the settings.
    #[must_use]
    pub fn with_config(mut self, config: Value) -> Self {
        self.config = config;
        self
    }
}

impl Origin {
    /// Returns the origin of a descriptor that the operator wrote at this place.
    #[must_use]
    pub fn operator(place: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            trust: Trust::Operator,
            is_stored: false,
            is_accepted: false,
            granted: Vec::new(),
        }
    }

    /// Returns the origin of a descriptor that was published to a store, maybe by a program.
    #[must_use]
    pub fn stored(place: impl Into<String>) -> Self {
        Self {
            is_stored: true,
            ..Self::operator(place)
        }
    }

    /// Returns the origin of a descriptor that an agent made, in a store. `is_accepted` tells if an operator accepted what it
    /// declares.
    #[must_use]
    pub fn agent(place: impl Into<String>, is_accepted: bool) -> Self {
        Self {
            trust: Trust::Agent,
            is_accepted,
            ..Self::stored(place)
        }
    }

    /// Sets the secrets that an operator granted.
    #[must_use]
    pub fn with_granted(mut self, granted: Vec<SecretUse>) -> Self {
        self.granted = granted;
        self
    }

    /// Returns `true` if what the descriptor declares counts: its guarantees, such as `idempotent` and `read_only`, and its own
    /// settings of layers, such as `cache` and `retry`.
    #[must_use]
    pub fn declarations_count(&self) -> bool {
        match self.trust {
            Trust::Operator => true,
            Trust::Agent => self.is_accepted,
            Trust::Upstream => false,
        }
    }

    /// Returns `true` if an agent made the descriptor, and no operator has accepted what it declares.
    #[must_use]
    pub fn awaits_acceptance(&self) -> bool {
        self.trust == Trust::Agent && !self.is_accepted
    }

    /// Returns the origin of a descriptor that a server sent.
    #[must_use]
    pub fn upstream(place: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            trust: Trust::Upstream,
            is_stored: false,
            is_accepted: false,
            granted: Vec::new(),
        }
    }
}

/// Kind of item that a descriptor describes. Calls of all kinds pass the same layers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Feature {
    /// Tool, which is called.
    #[default]
    Tool,
    /// Prompt of a server, which is rendered.
    Prompt,
    /// Resource of a server, which is read.
    Resource,
    /// Template of resources of a server.
    ResourceTemplate,
}

impl Feature {
    /// All kinds, in the order in which lists show them.
    pub const ALL: &'static [Self] = &[Self::Tool, Self::Prompt, Self::Resource, Self::ResourceTemplate];

    /// Returns the word for one item of this kind, for messages.
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

/// Executor of a tool: its kind, and settings that only this executor interprets.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ExecutorSpec {
    /// Kind of the executor, such as `http`.
    pub kind: String,
    /// Settings as written.
    pub config: Value,
}

/// Origin of a descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Origin {
    /// File and line, or server: for messages.
    pub place: String,
    /// Trust in the origin.
    pub trust: Trust,
    /// `true` if it comes from a store of versions instead of a file of the operator. Such a tool cannot run without a
    /// sandbox.
    pub is_stored: bool,
    /// `true` if an operator accepted what an agent declared: see [`Origin::declarations_count`].
    pub is_accepted: bool,
    /// Secrets that an operator granted to what an agent made.
    pub granted: Vec<SecretUse>,
}

/// Trust in the origin of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Trust {
    /// The operator wrote it: it may name environment variables and declare guarantees.
    Operator,
    /// An agent made it: it may use the secrets that an operator granted it, and reaches neither private networks nor paths of
    /// the machine. Whoever offers it has checked the grants: executors do not. Its declarations count once an operator
    /// accepted them.
    Agent,
    /// A server sent it: its hints never enable retries, caching or automatic approval.
    Upstream,
}

impl Trust {
    /// Returns the name in listings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Agent => "agent",
            Self::Upstream => "upstream",
        }
    }
}
