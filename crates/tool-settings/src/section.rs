use std::{fmt, sync::Arc, time::Duration};

use raw_json::RawJson;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Map, Value};
use tool_core::{Descriptor, Metadata, Overrides};

use crate::{
    ConfigDocument, ConfigProblem, Field, NodeId, SectionContext, SectionKey, keys::keys_of,
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
    tool: Option<SectionKeys<ToolSettings>>,
    levels: [Option<SectionKeys<Overrides>>; 3],
    always: Overrides,
    words: Vec<(&'static str, &'static str)>,
}

/// The keys of a section at one level, and the function that makes settings of them.
pub struct SectionKeys<S> {
    keys: Vec<SectionKey>,
    group: u8,
    schema: fn(&mut SchemaGenerator) -> Schema,
    read: ReadKeys<S>,
}

type ReadKeys<S> = Box<dyn Fn(&dyn ConfigDocument, Vec<(&'static str, NodeId)>, &mut S) + Send + Sync>;

/// Level of a configuration at which sections may stand, besides tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

type ToolCheck = dyn Fn(&dyn ConfiguredTool) + Send + Sync;

/// A check of one tool that is made when the whole configuration has been read.
#[derive(Clone)]
pub struct DeferredCheck(Arc<Check>);

type Check = dyn Fn(&dyn ConfiguredTool) + Send + Sync;

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

    fn read(&self, document: &dyn ConfigDocument, entries: &[&SectionEntries], settings: &mut S) {
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

/// All sections that a configuration may have.
///
/// # Examples
/// ```
/// use tool_settings::{Section, Sections};
///
/// let sections = Sections::new(vec![Section::new()]);
/// assert!(sections.keys("$tool").is_some_and(<[_]>::is_empty));
/// ```
#[derive(Debug)]
pub struct Sections {
    sections: Vec<Section>,
    anchors: Vec<(&'static str, Vec<SectionKey>)>,
}

/// The places of sections among the other keys of a map: the first group of each level, and the later ones.
const ANCHORS: [[&str; 2]; 4] = [
    ["$server", "$server-late"],
    ["$defaults", "$defaults-late"],
    ["$policy", "$policy-late"],
    ["$tool", "$tool-late"],
];

impl Sections {
    /// These sections, in this order in messages and in the JSON Schema.
    #[must_use]
    pub fn new(sections: Vec<Section>) -> Self {
        let mut all = Self {
            sections,
            anchors: Vec::new(),
        };
        let anchors = ANCHORS.iter().flatten();
        all.anchors = anchors
            .map(|anchor| {
                (
                    *anchor,
                    all.listed(anchor).flat_map(|part| part.keys).copied().collect(),
                )
            })
            .collect();
        all
    }

    /// Returns the keys at an anchor; `None` if there is no such anchor.
    #[must_use]
    pub fn keys(&self, anchor: &str) -> Option<&[SectionKey]> {
        let (_, keys) = self.anchors.iter().find(|(name, _)| *name == anchor)?;
        Some(keys)
    }

    /// Returns the schemas of the keys at an anchor; `None` if there is no such anchor.
    #[must_use]
    pub fn properties(&self, anchor: &str, generator: &mut SchemaGenerator) -> Option<Map<String, Value>> {
        self.keys(anchor)?;
        let mut properties = Map::new();
        for part in self.listed(anchor) {
            let mut schema = (part.schema)(generator);
            if let Some(Value::Object(own)) = schema.remove("properties") {
                properties.extend(own);
            }
        }
        Some(properties)
    }

    /// Returns the settings that each tool has.
    #[must_use]
    pub fn always(&self) -> Overrides {
        let mut all = Overrides::default();
        for section in &self.sections {
            all.merge(&section.always);
        }
        all
    }

    /// Returns the key that people mean by a word, such as `breaker` by `circuitbreaker`.
    #[must_use]
    pub fn suggested(&self, word: &str) -> Option<&'static str> {
        let mut words = self.sections.iter().flat_map(|section| &section.words);
        words.find(|(known, _)| *known == word).map(|(_, key)| *key)
    }

    /// Reads the sections of a tool.
    pub fn read_tool(
        &self,
        document: &dyn ConfigDocument,
        entries: &[&SectionEntries],
        tool: &mut ToolSettings,
    ) {
        for keys in self.sections.iter().filter_map(|section| section.tool.as_ref()) {
            keys.read(document, entries, tool);
        }
    }

    /// Reads the sections of another level.
    pub fn read(
        &self,
        level: SectionLevel,
        document: &dyn ConfigDocument,
        entries: &[&SectionEntries],
        overrides: &mut Overrides,
    ) {
        for section in &self.sections {
            if let Some(keys) = &section.levels[level as usize] {
                keys.read(document, entries, overrides);
            }
        }
    }

    /// The parts of sections at an anchor, in the order of their groups.
    fn listed(&self, anchor: &str) -> impl Iterator<Item = Listed<'_>> {
        let level = ANCHORS.iter().position(|names| names.contains(&anchor));
        let is_late = level.is_some_and(|level| ANCHORS[level][1] == anchor);
        let parts = self.sections.iter().filter_map(|section| match level? {
            3 => section.tool.as_ref().map(Listed::new),
            level => section.levels[level].as_ref().map(Listed::new),
        });
        let mut parts: Vec<_> = parts.filter(|part| (part.group > 0) == is_late).collect();
        parts.sort_by_key(|part| part.group);
        parts.into_iter()
    }
}

impl Default for Sections {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

struct Listed<'a> {
    keys: &'a [SectionKey],
    group: u8,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

impl<'a> Listed<'a> {
    fn new<S>(keys: &'a SectionKeys<S>) -> Self {
        Self {
            keys: &keys.keys,
            group: keys.group,
            schema: keys.schema,
        }
    }
}

/// The keys of sections that a map has: a field of this type, named as an anchor such as `$tool`, is the place of sections
/// among its other fields.
#[derive(Debug, Clone, Default)]
pub struct SectionEntries(Vec<(String, NodeId)>);

impl SectionEntries {
    /// Returns the place of a key, in our spelling, if it is given.
    #[must_use]
    pub fn place(&self, key: &str) -> Option<NodeId> {
        let (_, at) = self.0.iter().find(|(name, _)| name == key)?;
        Some(*at)
    }
}

impl<'de> Deserialize<'de> for SectionEntries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> serde::de::Visitor<'de> for EntriesVisitor {
    type Value = SectionEntries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("keys of sections")
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, at)) = map.next_entry()? {
            entries.push((key, NodeId::new(at)));
        }
        Ok(SectionEntries(entries))
    }
}

impl JsonSchema for SectionEntries {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Sections".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!(true)
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
