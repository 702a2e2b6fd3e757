use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use raw_json::RawJson;
use serde_json::{Map, Value};

use crate::{CheckJson, Descriptor, DynBackend, Feature, Provenance, Settings, ToolState};

/// A tool, resolved: its descriptor, compiled schemas and prepared executor in one immutable snapshot. A call looks
/// up nothing more. Prompts, resources and templates of servers are resolved in the same way: see [`Feature`].
pub struct Tool {
    parts: ToolParts,
    definition: RawJson,
    digest: OnceLock<[u8; 32]>,
    fingerprint: OnceLock<[u8; 32]>,
    generation: u64,
}

/// What a [`Tool`] is made from.
pub struct ToolParts {
    /// The tool as data.
    pub descriptor: Arc<Descriptor>,
    /// The compiled schema of its arguments.
    pub input: Arc<dyn CheckJson>,
    /// The compiled schema of its results.
    pub output: Option<Arc<dyn CheckJson>>,
    /// What runs it.
    pub executor: Arc<dyn DynBackend>,
    /// Where it comes from, as far as the descriptor does not say.
    pub provenance: Provenance,
    /// What layers know of it from earlier calls.
    pub state: Arc<ToolState>,
    /// Its settings, after defaults.
    pub settings: Settings,
}

impl Tool {
    /// Puts a tool together.
    #[must_use]
    pub fn new(parts: ToolParts) -> Self {
        let definition = annotated(definition(&parts.descriptor), &parts.descriptor);
        Self {
            parts,
            definition,
            digest: OnceLock::new(),
            fingerprint: OnceLock::new(),
            generation: 0,
        }
    }

    /// The same tool, made under the configuration of this number: what it is run by, and the values that its settings
    /// refer to, may be others than under another.
    #[must_use]
    pub fn in_generation(mut self, generation: u64) -> Self {
        self.generation = generation;
        self
    }

    /// The number of the configuration that it was made under, or of the first one under which it was the same.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether answers of the tool of before, which still lives, stand for answers of this one: both are written alike, have
    /// the same settings, and are run by the same.
    #[must_use]
    pub fn answers_as(&self, before: &Self) -> bool {
        let runner = self.executor().dyn_backend_id();
        runner.is_some()
            && runner == before.executor().dyn_backend_id()
            && self.settings() == before.settings()
            && self.fingerprint() == before.fingerprint()
    }

    /// The name that agents call it by.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.parts.descriptor.name
    }

    /// The tool as data.
    #[must_use]
    pub fn descriptor(&self) -> &Arc<Descriptor> {
        &self.parts.descriptor
    }

    /// What it is.
    #[must_use]
    pub fn feature(&self) -> Feature {
        self.parts.descriptor.feature
    }

    /// What agents are shown of it, as one object: name, title, description, `inputSchema`, `outputSchema` and, for
    /// one of a server, whatever else the server says, in the server's own bytes.
    #[must_use]
    pub fn definition(&self) -> &RawJson {
        &self.definition
    }

    /// The SHA-256 of the definition's canonical form: another definition is another tool.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| raw_json::digest(&self.definition))
    }

    /// Returns `true` if the definitions of both tools have the same canonical form.
    #[must_use]
    pub fn has_definition_of(&self, other: &Self) -> bool {
        self.definition.as_str() == other.definition.as_str() || self.digest() == other.digest()
    }

    /// The SHA-256 of everything that its answers depend on beside the call: the definition, the version, and what runs
    /// it with which settings.
    #[must_use]
    pub fn fingerprint(&self) -> &[u8; 32] {
        self.fingerprint.get_or_init(|| {
            let descriptor = &self.parts.descriptor;
            let (version, runner) = (&descriptor.version, &descriptor.executor);
            let parts = serde_json::json!([version, runner.kind, runner.config, self.digest()]);
            raw_json::digest(&RawJson::from(parts))
        })
    }

    /// The compiled schema of its arguments.
    #[must_use]
    pub fn input(&self) -> &dyn CheckJson {
        &*self.parts.input
    }

    /// The compiled schema of its results, if it declares one.
    #[must_use]
    pub fn output(&self) -> Option<&dyn CheckJson> {
        self.parts.output.as_deref()
    }

    /// What runs it.
    #[must_use]
    pub fn executor(&self) -> &Arc<dyn DynBackend> {
        &self.parts.executor
    }

    /// Where it comes from, as far as the descriptor does not say.
    #[must_use]
    pub fn provenance(&self) -> &Provenance {
        &self.parts.provenance
    }

    /// All names that policy rules may know it by: the one that agents call it by, and those of the same tool under which it
    /// is not shown.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let others = self.parts.provenance.names.iter();
        std::iter::once(self.name()).chain(others).map(|name| &**name)
    }

    /// What layers know of it from earlier calls.
    #[must_use]
    pub fn state(&self) -> &Arc<ToolState> {
        &self.parts.state
    }

    /// Its settings, after defaults.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.parts.settings
    }
}

/// A definition with what the operator declares of the tool, as annotations of MCP. A tool that changes nothing destroys
/// nothing. Other annotations stay as the server wrote them; nothing declared says whether a tool reaches the open world.
fn annotated(definition: RawJson, descriptor: &Descriptor) -> RawJson {
    let metadata = &descriptor.metadata;
    let is_read_only = metadata.read_only == Some(true);
    let declared = [
        ("readOnlyHint", metadata.read_only),
        ("destructiveHint", is_read_only.then_some(false)),
        ("idempotentHint", metadata.idempotent),
    ];
    let declared: Vec<(&str, RawJson)> = declared
        .into_iter()
        .filter_map(|(key, value)| Some((key, RawJson::from(value?))))
        .collect();
    if descriptor.feature != Feature::Tool || declared.is_empty() {
        return definition;
    }
    let before = definition.get("annotations");
    let before = before.filter(|before| before.kind() == raw_json::JsonKind::Object);
    let annotations = before.unwrap_or(RawJson::object()).with_members(&declared);
    annotations
        .and_then(|annotations| definition.with_members(&[("annotations", annotations)]))
        .unwrap_or(definition)
}

/// A server's own definition under our name, or one made from the descriptor.
fn definition(descriptor: &Descriptor) -> RawJson {
    if let (Feature::Resource | Feature::ResourceTemplate, Some(definition)) =
        (descriptor.feature, &descriptor.definition)
    {
        // Known by its URI, which is the server's: its name is for people.
        return definition.clone();
    }
    let name = RawJson::from(&*descriptor.name);
    if let Some(Ok(definition)) = descriptor
        .definition
        .as_ref()
        .map(|raw| raw.with_members(&[("name", name.clone())]))
    {
        return definition;
    }
    let mut object = Map::new();
    object.insert("name".to_owned(), Value::from(&*descriptor.name));
    if let Some(title) = &descriptor.title {
        object.insert("title".to_owned(), Value::from(title.as_str()));
    }
    object.insert(
        "description".to_owned(),
        Value::from(descriptor.description.as_str()),
    );
    let mut members = vec![("inputSchema", descriptor.input_schema.clone())];
    members.extend(
        descriptor
            .output_schema
            .clone()
            .map(|schema| ("outputSchema", schema)),
    );
    RawJson::from(Value::Object(object))
        .with_members(&members)
        .expect("the value is an object")
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("name", self.name())
            .field("settings", self.settings())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ToolParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolParts")
            .field("descriptor", &self.descriptor)
            .finish_non_exhaustive()
    }
}
