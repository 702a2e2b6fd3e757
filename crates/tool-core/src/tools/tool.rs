use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use raw_json::RawJson;
use sha2::{Digest as _, Sha256};

use crate::{
    CheckJson, Descriptor, DynBackend, Feature, OrDefault, Provenance, Settings, TaskSupport, ToolState,
};

/// A resolved tool: its descriptor, compiled schemas and prepared executor in one immutable snapshot. A call needs no
/// further lookups. Prompts, resources and templates of servers are resolved in the same way: see [`Feature`].
pub struct Tool {
    parts: ToolParts,
    /// Made on first use: most tools of a large registry are never listed.
    definition: OnceLock<RawJson>,
    digest: OnceLock<Box<[u8; 32]>>,
    fingerprint: OnceLock<Box<[u8; 32]>>,
    generation: u64,
}

/// Parts of a [`Tool`].
#[non_exhaustive]
pub struct ToolParts {
    /// Description of the tool as data.
    pub descriptor: Arc<Descriptor>,
    /// Compiled schema of the arguments.
    pub input: Arc<dyn CheckJson>,
    /// Compiled schema of the results.
    pub output: Option<Arc<dyn CheckJson>>,
    /// Backend that runs the tool.
    pub executor: Arc<dyn DynBackend>,
    /// Origin of the tool, as far as the descriptor does not contain it.
    pub provenance: OrDefault<Provenance>,
    /// State that layers keep across calls of the tool.
    pub state: Arc<ToolState>,
    /// Settings of the tool, after defaults.
    pub settings: Settings,
}

impl Tool {
    /// Creates a tool from its parts.
    #[must_use]
    pub fn new(parts: ToolParts) -> Self {
        Self {
            parts,
            definition: OnceLock::new(),
            digest: OnceLock::new(),
            fingerprint: OnceLock::new(),
            generation: 0,
        }
    }

    /// Returns the tool as created under the configuration with this number. Its backend, and the values that its
    /// settings refer to, may differ from those of other generations.
    #[must_use]
    pub fn in_generation(mut self, generation: u64) -> Self {
        self.generation = generation;
        self
    }

    /// Returns the number of the configuration under which the tool was created, or of the first one under which it
    /// was the same. A tool of a [`ToolBuilder`](crate::ToolBuilder) has a number that no other tool has.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns `true` if replies of the previous tool, which is still alive, are valid for this one: both have equal
    /// descriptors, equal settings and the same backend.
    #[must_use]
    pub fn answers_as(&self, before: &Self) -> bool {
        let runner = self.executor().dyn_backend_id();
        runner.is_some()
            && runner == before.executor().dyn_backend_id()
            && self.settings() == before.settings()
            && self.fingerprint() == before.fingerprint()
    }

    /// Returns the name by which agents call the tool.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.parts.descriptor.name
    }

    /// Returns the description of the tool as data.
    #[must_use]
    pub fn descriptor(&self) -> &Arc<Descriptor> {
        &self.parts.descriptor
    }

    /// Returns the MCP feature that the tool represents.
    #[must_use]
    pub fn feature(&self) -> Feature {
        self.parts.descriptor.feature
    }

    /// Returns the definition that agents are shown, as one object: name, title, description, `inputSchema`,
    /// `outputSchema` and, for a tool of a server, all further members of the server's definition, in the server's
    /// own bytes.
    #[must_use]
    pub fn definition(&self) -> &RawJson {
        self.definition.get_or_init(|| {
            let descriptor = &self.parts.descriptor;
            let definition = annotated(definition(descriptor), descriptor);
            match self.parts.settings.task_support {
                TaskSupport::None => definition,
                _ => with_task_support(definition),
            }
        })
    }

    /// Returns the SHA-256 of the definition's canonical form. A tool with another definition is another tool.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        self.digest
            .get_or_init(|| Box::new(raw_json::digest(self.definition())))
    }

    /// Returns `true` if the definitions of both tools have the same canonical form.
    #[must_use]
    pub fn has_definition_of(&self, other: &Self) -> bool {
        self.definition().as_str() == other.definition().as_str() || self.digest() == other.digest()
    }

    /// Returns the SHA-256 of everything that replies depend on besides the call: the definition, the version, the
    /// backend with its settings, and the files.
    #[must_use]
    pub fn fingerprint(&self) -> &[u8; 32] {
        self.fingerprint.get_or_init(|| {
            let descriptor = &self.parts.descriptor;
            let (version, runner) = (&descriptor.version, &descriptor.executor);
            let files = descriptor.files.iter();
            let files: Vec<_> = files
                .map(|(path, content)| (path, raw_json::hex(&Sha256::digest(content))))
                .collect();
            let parts = serde_json::json!([version, runner.kind, runner.config, self.digest(), files]);
            Box::new(raw_json::digest(&RawJson::from(parts)))
        })
    }

    /// Returns the compiled schema of the arguments.
    #[must_use]
    pub fn input(&self) -> &dyn CheckJson {
        &*self.parts.input
    }

    /// Returns the compiled schema of the results, if the tool declares one.
    #[must_use]
    pub fn output(&self) -> Option<&dyn CheckJson> {
        self.parts.output.as_deref()
    }

    /// Returns the backend that runs the tool.
    #[must_use]
    pub fn executor(&self) -> &Arc<dyn DynBackend> {
        &self.parts.executor
    }

    /// Returns the origin of the tool, as far as the descriptor does not contain it.
    #[must_use]
    pub fn provenance(&self) -> &Provenance {
        &self.parts.provenance
    }

    /// Iterates over all names by which policy rules may refer to the tool: the one by which agents call it, and
    /// names of the same tool under which it is not shown.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let others = self.parts.provenance.names.iter();
        std::iter::once(self.name()).chain(others).map(|name| &**name)
    }

    /// Returns the state that layers keep across calls of the tool.
    #[must_use]
    pub fn state(&self) -> &Arc<ToolState> {
        &self.parts.state
    }

    /// Returns the settings of the tool, after defaults.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.parts.settings
    }
}

/// Adds the operator's declarations to a definition, as MCP annotations. A tool that changes nothing is also marked
/// as not destructive. Other annotations stay as the server wrote them; no declaration covers the open-world hint. What an
/// agent declared is added once an operator accepted it.
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
    if descriptor.feature != Feature::Tool || declared.is_empty() || descriptor.origin.awaits_acceptance() {
        return definition;
    }
    let before = definition.get("annotations");
    let before = before.filter(|before| before.kind() == raw_json::JsonKind::Object);
    let annotations = before.unwrap_or(RawJson::object()).with_members(&declared);
    annotations
        .and_then(|annotations| definition.with_members(&[("annotations", annotations)]))
        .unwrap_or(definition)
}

/// Says in a definition that a call may become a task (MCP 2025-11-25, `execution.taskSupport`).
fn with_task_support(definition: RawJson) -> RawJson {
    if definition.get("execution").is_some() {
        return definition;
    }
    let execution = RawJson::from_members(&[("taskSupport", RawJson::from("optional"))]);
    let with_support = definition.with_members(&[("execution", execution)]);
    with_support.unwrap_or(definition)
}

/// Returns a server's own definition under our name, or one made from the descriptor.
fn definition(descriptor: &Descriptor) -> RawJson {
    if let (Feature::Resource | Feature::ResourceTemplate, Some(definition)) =
        (descriptor.feature, &descriptor.definition)
    {
        // Identified by its URI, which is the server's: its name is for people.
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
    let title = descriptor.title.as_deref().map(RawJson::from);
    let members = [
        ("name", Some(name)),
        ("title", title),
        ("description", Some(RawJson::from(&*descriptor.description))),
        ("inputSchema", Some(descriptor.input_schema.clone())),
        ("outputSchema", descriptor.output_schema.clone()),
    ];
    let members = members.into_iter().filter_map(|(key, value)| Some((key, value?)));
    RawJson::from_members(&members.collect::<Vec<_>>())
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
