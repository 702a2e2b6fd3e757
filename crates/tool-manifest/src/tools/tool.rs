use std::{borrow::Cow, sync::Arc, time::Duration};

use raw_json::RawJson;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Map, Value};
use tool_core::{Descriptor, ExecutorSpec, Metadata, Overrides};
use tool_settings::{DeferredCheck, Field, NodeId, Percent, Period, Raw, SectionEntries, Text, ToolSettings};

use crate::{
    config::call_timeout,
    document::{
        node::Kind,
        place::{Cx, Place},
        suggest,
    },
    servers::server::milliseconds,
    tools::{
        examples::ExampleField,
        metadata::{self, Classification, Latency, MetadataFields, Pii},
        schema_field::{self, ParametersField, SchemaField},
    },
};

/// Settings whose values are paths: relative ones begin in the directory of their file.
const PATH_SETTINGS: [&str; 1] = ["result_file"];

/// A tool: its definition for agents, its executor, and its guarantees and needs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Tool", extend("required" = ["description"], "oneOf" = [{"required": ["executor"]}, {"required": ["route"]}]))]
pub(crate) struct ToolBody {
    /// A name for people.
    pub(super) title: Field<String>,
    /// Purpose of the tool and when to use it: a model chooses by it.
    pub(super) description: Field<String>,
    /// Its version, by convention a semantic one.
    pub(super) version: Field<Text>,
    /// The JSON Schema of its arguments; any object by default.
    #[serde(alias = "inputSchema")]
    pub(super) input_schema: SchemaField,
    /// Its arguments: another name for `input_schema`, or a list of `{name, type, required, description}`.
    pub(super) parameters: ParametersField,
    /// The JSON Schema of its results, which are then checked.
    #[serde(alias = "outputSchema")]
    pub(super) output_schema: SchemaField,
    /// Time limit of one attempt, in milliseconds.
    pub(super) timeout_ms: Field<u64>,
    /// Time limit of a whole call, queueing, retries and fallbacks included, instead of the one in `defaults`.
    pub(super) call_timeout: Field<Period>,
    #[serde(rename = "$tool")]
    pub(super) sections: SectionEntries,
    /// Executor of the tool: `kind`, and the settings of that kind.
    pub(super) executor: ExecutorField,
    /// Makes the tool a route, which calls whichever tool with a capability is best at the moment: see the settings of the
    /// executor `route`, of which this is the short form.
    pub(super) route: RouteField,
    /// Capabilities of the tool, such as `search`, by which it is found: see `tools search --capability`.
    /// `realtime-data` also shortens the time for which answers are cached.
    pub(super) capabilities: Field<Vec<Field<String>>>,
    /// Free labels, such as `production-ready`, by which it is found: see `tools search --tag`.
    pub(super) tags: Field<Vec<Field<String>>>,
    /// Other names by which a search finds the tool, such as `wetter`. It is not called by them.
    pub(super) aliases: Field<Vec<Field<String>>>,
    /// Sentences for which the tool is the answer, such as `do I need an umbrella in Oslo?`: a search finds it by
    /// their words. Three to five are enough. A map is a call that tests the tool: `arguments`, and `result`, `shape` or
    /// `error`.
    pub(super) examples: Field<Vec<ExampleField>>,
    /// Usual latency of the tool.
    #[serde(alias = "estimated_latency", alias = "estimatedLatency")]
    pub(super) latency: Field<Latency>,
    #[serde(rename = "$tool-late")]
    pub(super) late_sections: SectionEntries,
    /// Cost of a call, in US dollars.
    #[serde(alias = "costPerCall")]
    pub(super) cost_per_call: Field<f64>,
    /// Share of calls that succeed by agreement, such as `99.5%`. Results of a search can be ordered by it, unless
    /// there are measurements.
    pub(super) sla: Field<Percent>,
    /// Allows that a failed call is tried again.
    pub(super) retryable: Field<bool>,
    /// Declares that calling it twice has the effect of calling it once.
    pub(super) idempotent: Field<bool>,
    /// Declares that it changes nothing.
    #[serde(alias = "readOnly")]
    pub(super) read_only: Field<bool>,
    /// Permissions that a caller needs, such as `network.external`.
    #[serde(alias = "requiredPermissions")]
    pub(super) required_permissions: Field<Vec<Field<String>>>,
    /// Confidentiality of its data. Shown to operators, also with approvals; it has no effect yet, and `check` warns
    /// of that.
    #[serde(alias = "dataClassification")]
    pub(super) data_classification: Field<Classification>,
    /// Handling of personal data in its arguments: `none`. `anonymize` and `encrypt` do not exist yet, so a
    /// configuration with one of them cannot be used.
    #[serde(alias = "piiHandling")]
    pub(super) pii_handling: Field<Pii>,
    /// Tools to use instead when it fails, best first: `on_failure` with nothing but fallbacks.
    pub(super) fallbacks: Field<Vec<Field<String>>>,
    /// A URL that answers 2xx while the tool is healthy.
    #[serde(alias = "healthCheckEndpoint")]
    pub(super) health_check_endpoint: Field<String>,
}

/// Executor of a tool, left as it is written: the settings are the executor's.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(transparent)]
pub(crate) struct ExecutorField(pub(crate) Raw);

impl JsonSchema for ExecutorField {
    fn schema_name() -> Cow<'static, str> {
        "Executor".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "properties": {"kind": {"type": "string"}},
            "required": ["kind"],
        })
    }
}

/// Settings of a route, left as they are written.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(transparent)]
pub(crate) struct RouteField(pub(crate) Raw);

impl JsonSchema for RouteField {
    fn schema_name() -> Cow<'static, str> {
        "RouteSettings".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object"})
    }
}

/// A descriptor with the places of its parts.
#[derive(Debug, Clone)]
pub(crate) struct ToolDraft {
    pub(crate) descriptor: Arc<Descriptor>,
    pub(crate) places: ToolPlaces,
    /// `true` if it does not name the server that runs it.
    pub(crate) is_unrouted: bool,
    /// `true` if it comes from a file of a directory.
    pub(crate) is_scanned: bool,
    /// Checks of its sections that need the whole configuration.
    pub(crate) checks: Vec<DeferredCheck>,
}

/// Way in which the place of a tool is written, from which a document with that tool alone can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WrittenAs {
    /// The content of one of our tools, without its name.
    Body,
    /// The content of one of our workflows, without its name.
    Workflow,
    /// A whole document.
    Document,
    /// The `spec` of a manifest of PromptKit.
    PromptKit,
}

/// Places of the parts of a tool.
#[derive(Debug, Clone)]
pub(crate) struct ToolPlaces {
    pub(crate) written_as: WrittenAs,
    /// Its name, or the entry that is called by it.
    pub(crate) name: Place,
    pub(crate) tool: NodeId,
    pub(crate) settings: Settings,
    pub(crate) input_schema: Option<NodeId>,
    pub(crate) output_schema: Option<NodeId>,
}

/// Places of an executor's settings: each on its own, since some dialects put them under other names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub(crate) root: Option<NodeId>,
    pub(crate) entries: Vec<(String, NodeId)>,
}

/// Parts of a tool, in whatever dialect it is written.
pub(crate) struct Parts {
    pub(crate) written_as: WrittenAs,
    pub(crate) name: String,
    /// Place that is shown for its name.
    pub(crate) named: NodeId,
    /// The tool as a whole.
    pub(crate) at: NodeId,
    pub(crate) title: Option<String>,
    pub(crate) description: Field<String>,
    pub(crate) version: Option<String>,
    pub(crate) input_schema: Option<(Option<NodeId>, RawJson)>,
    pub(crate) output_schema: Option<(NodeId, RawJson)>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) executor: Option<(ExecutorSpec, Settings)>,
    pub(crate) metadata: Metadata,
    pub(crate) overrides: Overrides,
}

/// Puts a tool together. Returns `None` if it is not usable, which is then reported.
pub(crate) fn assemble(cx: Cx<'_>, parts: Parts) -> Option<ToolDraft> {
    if let Err(problem) = tool_core::check_name(&parts.name) {
        let hint = format!("call it `{}`", tool_core::outward_name(&parts.name));
        cx.key_error(parts.named, problem.to_string(), hint);
    }
    if parts.description.is_absent() {
        cx.key_error(
            parts.at,
            format!("the tool `{}` has no `description`", suggest::shown(&parts.name)),
            "say what it does and when to use it: a model chooses by it",
        );
    }
    let place = cx.place(parts.named);
    let (executor, settings) = parts.executor?;
    let (input_place, input_schema) = parts
        .input_schema
        .unwrap_or_else(|| (None, schema_field::any_object()));
    let mut descriptor = Descriptor::new(parts.name, executor);
    descriptor.title = parts.title;
    descriptor.description = parts.description.get().unwrap_or_default();
    descriptor.version = parts.version;
    descriptor.input_schema = input_schema;
    descriptor.output_schema = parts.output_schema.as_ref().map(|(_, schema)| schema.clone());
    descriptor.timeout = parts.timeout;
    descriptor.metadata = parts.metadata.into();
    descriptor.overrides = parts.overrides;
    descriptor.origin = place.origin();
    Some(ToolDraft {
        descriptor: Arc::new(descriptor),
        is_unrouted: false,
        is_scanned: false,
        checks: Vec::new(),
        places: ToolPlaces {
            written_as: parts.written_as,
            name: place,
            tool: parts.at,
            settings,
            input_schema: input_place,
            output_schema: parts.output_schema.map(|(at, _)| at),
        },
    })
}

/// Reads a tool in our own dialect.
pub(crate) fn tool(cx: Cx<'_>, name: &str, named: NodeId, at: NodeId, body: ToolBody) -> Option<ToolDraft> {
    let executor = match body
        .route
        .0
        .0
        .filter(|at| !matches!(cx.document.kind(*at), Kind::Null))
    {
        Some(route) => route_executor(cx, route, body.executor.0),
        None => executor(cx, at, body.executor.0),
    };
    with_executor(cx, name, (named, at), body, (WrittenAs::Body, executor))
}

/// Reads a tool whose executor is known. The places are those of its name and of the tool.
pub(super) fn with_executor(
    cx: Cx<'_>,
    name: &str,
    (named, at): (NodeId, NodeId),
    body: ToolBody,
    (written_as, executor): (WrittenAs, Option<(ExecutorSpec, Settings)>),
) -> Option<ToolDraft> {
    let input_schema = schema_field::either(cx, body.input_schema, body.parameters);
    let timeout_at = body.timeout_ms.given();
    let timeout = milliseconds(cx, body.timeout_ms);
    let mut settings = ToolSettings::new(name);
    settings.timeout = timeout;
    settings.fallbacks = body.fallbacks;
    settings.overrides.call_timeout = call_timeout::call_timeout(cx, body.call_timeout);
    settings.metadata = metadata::metadata(
        cx,
        MetadataFields {
            capabilities: body.capabilities,
            tags: body.tags,
            aliases: body.aliases,
            examples: body.examples,
            latency: body.latency,
            cost_per_call: body.cost_per_call,
            sla: body.sla,
            retryable: body.retryable,
            idempotent: body.idempotent,
            read_only: body.read_only,
            required_permissions: body.required_permissions,
            data_classification: body.data_classification,
            pii_handling: body.pii_handling,
            health_check_endpoint: body.health_check_endpoint,
        },
    );
    call_timeout::outlasted(cx, timeout_at, timeout, settings.overrides.call_timeout);
    let entries = [&body.sections, &body.late_sections];
    cx.sections.read_tool(&cx, &entries, &mut settings);
    settings.metadata.fallbacks = metadata::texts(settings.fallbacks);
    let parts = Parts {
        written_as,
        name: settings.name,
        named,
        at,
        title: body.title.get(),
        description: body.description,
        version: body.version.get().map(|Text(version)| version),
        input_schema,
        output_schema: schema_field::schema(cx, body.output_schema.0),
        timeout,
        executor,
        overrides: settings.overrides,
        metadata: settings.metadata,
    };
    let mut draft = assemble(cx, parts)?;
    draft.checks = settings.checks;
    Some(draft)
}

/// Kind of the executor of routes.
pub(crate) const ROUTE_KIND: &str = "route";

/// Returns the executor of a tool with `route`.
fn route_executor(cx: Cx<'_>, at: NodeId, executor: Raw) -> Option<(ExecutorSpec, Settings)> {
    if let Some(executor) = executor.0 {
        let hint = "remove one of them: a route calls other tools, and an executor runs this one";
        cx.key_error(executor, "a tool with `route` has no `executor`", hint);
        return None;
    }
    if !cx.expect_map(at, "write `{capability: ..}`") {
        return None;
    }
    let settings = Settings {
        root: Some(at),
        entries: cx.document.entries(at).to_vec(),
    };
    Some((spec(cx, ROUTE_KIND, &settings), settings))
}

/// Splits `{kind, ..settings}`.
fn executor(cx: Cx<'_>, tool: NodeId, raw: Raw) -> Option<(ExecutorSpec, Settings)> {
    let Some(at) = raw.0.filter(|at| !matches!(cx.document.kind(*at), Kind::Null)) else {
        cx.key_error(
            tool,
            "the tool has no `executor`",
            "say what runs it, such as `executor: {kind: http, ..}`",
        );
        return None;
    };
    if !cx.expect_map(at, "write `{kind: .., ..}`") {
        return None;
    }
    let Some(kind) = cx.document.get(at, "kind") else {
        let keys: Vec<&str> = cx
            .document
            .entries(at)
            .iter()
            .map(|(key, _)| key.as_str())
            .collect();
        let hint = match suggest::nearest("kind", &keys) {
            Some(near) => format!("did you mean it by `{near}`?"),
            None => "add `kind: http`, `kind: mock` or another".to_owned(),
        };
        cx.key_error(at, "the executor has no `kind`", hint);
        return None;
    };
    let Some(kind_text) = cx.document.text(kind).filter(|text| !text.is_empty()) else {
        let found = cx.document.describe(kind);
        cx.error(
            kind,
            format!("expected the name of an executor, found {found}"),
            "",
        );
        return None;
    };
    let entries = cx.document.entries(at).iter();
    let settings = Settings {
        root: Some(at),
        entries: entries.filter(|(key, _)| key != "kind").cloned().collect(),
    };
    Some((spec(cx, kind_text, &settings), settings))
}

/// Returns an executor's name and its settings as a tree.
pub(crate) fn spec(cx: Cx<'_>, kind: &str, settings: &Settings) -> ExecutorSpec {
    let mut config = Map::new();
    for (key, at) in &settings.entries {
        if let Some(number) = cx.document.imprecise(*at) {
            cx.warning(
                number,
                "this number has more digits than are kept",
                "put it in quotation marks if every digit matters",
            );
        }
        let mut value = cx.document.to_value(*at);
        if PATH_SETTINGS.contains(&key.as_str())
            && let Value::String(path) = &mut value
        {
            *path = cx
                .document
                .source
                .directory
                .join(&*path)
                .to_string_lossy()
                .into_owned();
        }
        config.insert(key.clone(), value);
    }
    ExecutorSpec::new(kind.to_owned()).with_config(Value::Object(config))
}
