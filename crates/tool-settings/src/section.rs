use std::{fmt, sync::Arc, time::Duration};

use raw_json::RawJson;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use tool_core::{Descriptor, Metadata, Overrides};

use crate::{
    ConfigDocument, ConfigProblem, Field, NodeId, SectionContext, SectionEntries, SectionKey, keys::keys_of,
    read::read_entries,
};

/// Section of a configuration that one layer reads: its keys at each level where they may stand, and the settings that they
/// make.
///
/// A layer has one function that returns its section. The program hands the list of all sections to `tool-manifest`.
///
/// # Examples
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use tool_core::{Overrides, Setting};
/// use tool_settings::{Field, Section, SectionContext, SectionKeys};
///
/// /// Maximum size of the arguments of a call, in bytes.
/// #[derive(Debug, Clone, PartialEq, Eq)]
/// struct MaxArguments(usize);
///
/// impl Setting for MaxArguments {}
///
/// #[derive(Debug, Default, Deserialize, JsonSchema)]
/// #[serde(default)]
/// struct Keys {
///     /// Maximum size of the arguments of a call.
///     max_arguments_bytes: Field<usize>,
/// }
///
/// fn read(cx: SectionContext<'_>, keys: Keys, overrides: &mut Overrides) {
///     if let Some((at, bytes)) = keys.max_arguments_bytes.located() {
///         if bytes == 0 {
///             cx.error(at, "no arguments fit into 0 bytes", "leave it out");
///         }
///         overrides.set(MaxArguments(bytes));
///     }
/// }
///
/// let section = Section::new().for_servers(SectionKeys::new(read)).for_defaults(SectionKeys::new(read));
/// # let _ = section;
/// ```
#[derive(Debug, Default)]
pub struct Section {
    pub(crate) tool: Option<SectionKeys<ToolSettings>>,
    pub(crate) levels: [Option<SectionKeys<Overrides>>; 3],
    pub(crate) always: Overrides,
    pub(crate) words: Vec<(&'static str, &'static str)>,
}

/// The keys of a section at one level, and the function that makes settings of them.
pub struct SectionKeys<S> {
    pub(crate) keys: Vec<SectionKey>,
    pub(crate) group: u8,
    pub(crate) schema: fn(&mut SchemaGenerator) -> Schema,
    read: ReadKeys<S>,
}

type ReadKeys<S> = Box<dyn Fn(&dyn ConfigDocument, Vec<(&'static str, NodeId)>, &mut S) + Send + Sync>;

/// Level of a configuration at which sections may stand, besides tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SectionLevel {
    /// One server, for all of its tools.
    Server,
    /// `defaults`, for all tools.
    Defaults,
    /// `policy`.
    Policy,
}

/// A tool that is being read: what is known of it, and what its sections set.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ToolSettings {
    /// Name of the tool.
    pub name: String,
    /// Time limit of one attempt, if the tool has its own.
    pub timeout: Option<Duration>,
    /// Tools to call instead, as the key `fallbacks` lists them.
    pub fallbacks: Field<Vec<Field<String>>>,
    /// Guarantees and needs of the tool.
    pub metadata: Metadata,
    /// Settings of the tool.
    pub overrides: Overrides,
    /// Checks that need the whole configuration.
    pub checks: Vec<DeferredCheck>,
}

impl ToolSettings {
    /// Creates the settings of a tool without any.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }
}

type ToolCheck = dyn Fn(&dyn ConfiguredTool) + Send + Sync;

/// A check of one tool that is made when the whole configuration has been read.
#[derive(Clone)]
pub struct DeferredCheck(Arc<ToolCheck>);

/// A tool among everything else that is configured.
pub trait ConfiguredTool {
    /// The tool itself.
    fn descriptor(&self) -> &Descriptor;

    /// Returns `true` if there may be a tool of this name: the tools of a server are not known before it is started.
    fn may_exist(&self, name: &str) -> bool;

    /// Names of all tools that are written out.
    fn names(&self) -> Vec<&str>;

    /// Settings of `defaults`.
    fn defaults(&self) -> &Overrides;

    /// Settings of all servers.
    fn servers(&self) -> Vec<&Overrides>;

    /// Returns `true` if the configuration names a model or a service that embeds texts.
    fn embeds_texts(&self) -> bool;

    /// Describes why the tool's output schema refuses a value. `None` if it does not, or if the schema itself is unusable,
    /// which is a problem of its own.
    fn output_mismatch(&self, value: &RawJson) -> Option<String>;

    /// Reports a problem in the tool's document.
    fn report(&self, problem: ConfigProblem);
}

impl Section {
    /// A section without keys.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the keys of a tool.
    #[must_use]
    pub fn for_tools(mut self, keys: SectionKeys<ToolSettings>) -> Self {
        self.tool = Some(keys);
        self
    }

    /// Adds the keys of a server.
    #[must_use]
    pub fn for_servers(self, keys: SectionKeys<Overrides>) -> Self {
        self.at(SectionLevel::Server, keys)
    }

    /// Adds the keys of `defaults`.
    #[must_use]
    pub fn for_defaults(self, keys: SectionKeys<Overrides>) -> Self {
        self.at(SectionLevel::Defaults, keys)
    }

    /// Adds the keys of `policy`.
    #[must_use]
    pub fn for_policy(self, keys: SectionKeys<Overrides>) -> Self {
        self.at(SectionLevel::Policy, keys)
    }

    fn at(mut self, level: SectionLevel, keys: SectionKeys<Overrides>) -> Self {
        self.levels[level as usize] = Some(keys);
        self
    }

    /// Adds a setting that each tool has, so that it can take over facts of the tool's metadata when it
    /// [settles](tool_core::Setting::settled).
    #[must_use]
    pub fn always(mut self, setting: impl tool_core::Setting) -> Self {
        self.always.set(setting);
        self
    }

    /// Adds a word, without `_` and capitals, that people write instead of a key of a tool: it is refused with the key
    /// as the hint.
    #[must_use]
    pub fn suggest(mut self, word: &'static str, key: &'static str) -> Self {
        self.words.push((word, key));
        self
    }
}

impl<S> SectionKeys<S> {
    /// The fields of `K` as keys, and the function that makes settings of them. It is called also if none of the keys is
    /// given.
    #[must_use]
    pub fn new<K>(read: fn(SectionContext<'_>, K, &mut S)) -> Self
    where
        K: DeserializeOwned + JsonSchema + Default + 'static,
        S: 'static,
    {
        let keys = keys_of::<K>().iter().map(|name| SectionKey { name, key: name });
        Self {
            keys: keys.collect(),
            group: 0,
            schema: K::json_schema,
            read: Box::new(move |document, entries, settings| {
                let keys = if entries.is_empty() {
                    Some(K::default())
                } else {
                    read_entries(document, entries)
                };
                if let Some(keys) = keys {
                    read(SectionContext::new(document), keys, settings);
                }
            }),
        }
    }

    /// Adds another spelling of a key.
    #[must_use]
    pub fn spelling(mut self, name: &'static str, key: &'static str) -> Self {
        let place = self.keys.iter().position(|known| known.name == key);
        self.keys
            .insert(place.unwrap_or(self.keys.len()), SectionKey { name, key });
        self
    }

    /// Lists the keys in a later group: in the JSON Schema and in messages. Groups have no other meaning.
    #[must_use]
    pub fn in_group(mut self, group: u8) -> Self {
        self.group = group;
        self
    }

    pub(crate) fn read(&self, document: &dyn ConfigDocument, entries: &[&SectionEntries], settings: &mut S) {
        let given = entries.iter().flat_map(|entries| &entries.0);
        let own = given.filter_map(|(key, at)| {
            let key = self.keys.iter().find(|own| own.name == key)?;
            Some((key.key, *at))
        });
        (self.read)(document, own.collect(), settings);
    }
}

impl DeferredCheck {
    /// Makes a check of a function.
    #[must_use]
    pub fn new(check: impl Fn(&dyn ConfiguredTool) + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// Makes the check.
    pub fn run(&self, tool: &dyn ConfiguredTool) {
        (self.0)(tool);
    }
}

impl<S> fmt::Debug for SectionKeys<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SectionKeys")
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for DeferredCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeferredCheck")
    }
}
