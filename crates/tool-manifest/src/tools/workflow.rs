use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use tool_settings::{Field, NodeId, Period, Raw, SectionEntries, Text};

use crate::{
    document::{node::Kind, place::Cx},
    tools::{
        examples::ExampleField,
        schema_field::{ParametersField, SchemaField},
        tool::{self, Settings, ToolBody, ToolDraft, WrittenAs},
    },
};

/// Kind of the executor of workflows.
pub(crate) const KIND: &str = "workflow";
/// Keys of a workflow that are settings of its executor.
pub(crate) const SETTINGS: [&str; 6] = [
    "steps",
    "output",
    "on_error",
    "errorHandling",
    "window",
    "max_calls",
];

/// A workflow: a tool that is made of calls of other tools.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Workflow", extend("required" = ["description", "steps"]))]
pub(crate) struct WorkflowBody {
    /// A name for people.
    title: Field<String>,
    /// Purpose of the workflow and when to use it: a model chooses by it.
    description: Field<String>,
    /// Its version, by convention a semantic one.
    version: Field<Text>,
    /// The JSON Schema of its arguments; any object by default.
    #[serde(alias = "inputSchema")]
    input_schema: SchemaField,
    /// Its arguments: another name for `input_schema`, or a list of `{name, type, required, description}`.
    parameters: ParametersField,
    /// The JSON Schema of its results, which are then checked.
    #[serde(alias = "outputSchema")]
    output_schema: SchemaField,
    /// Steps: see the settings of the executor `workflow`.
    steps: SettingField,
    /// Result of the workflow: JSON with references and expressions. By default, the result of the last step.
    output: SettingField,
    /// Reaction to a failed step: `fail` or `continue`.
    #[serde(alias = "errorHandling")]
    on_error: SettingField,
    /// Maximum number of concurrent calls.
    window: SettingField,
    /// Maximum number of calls, those of inner workflows included.
    max_calls: SettingField,
    /// Time limit of a whole call, all steps included, instead of the one in `defaults`.
    call_timeout: Field<Period>,
    #[serde(rename = "$tool")]
    sections: SectionEntries,
    /// Capabilities of the workflow, such as `research`, by which it is found.
    capabilities: Field<Vec<Field<String>>>,
    /// Free labels, by which it is found.
    tags: Field<Vec<Field<String>>>,
    /// Other names by which a search finds it. It is not called by them.
    aliases: Field<Vec<Field<String>>>,
    /// Sentences for which the workflow is the answer, or calls that test it: see `examples` of tools.
    examples: Field<Vec<ExampleField>>,
    #[serde(rename = "$tool-late")]
    late_sections: SectionEntries,
    /// Allows that a failed call is tried again.
    retryable: Field<bool>,
    /// Declares that calling it twice has the effect of calling it once.
    idempotent: Field<bool>,
    /// Declares that it changes nothing.
    #[serde(alias = "readOnly")]
    read_only: Field<bool>,
    /// Permissions that a caller needs, besides those for its steps.
    #[serde(alias = "requiredPermissions")]
    required_permissions: Field<Vec<Field<String>>>,
}

/// Setting of the executor, left as it is written.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(transparent)]
pub(crate) struct SettingField(Raw);

impl JsonSchema for SettingField {
    fn schema_name() -> Cow<'static, str> {
        "WorkflowSetting".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!(true)
    }
}

/// Reads a workflow.
pub(crate) fn workflow(
    cx: Cx<'_>,
    name: &str,
    named: NodeId,
    at: NodeId,
    body: WorkflowBody,
) -> Option<ToolDraft> {
    let is_there = |at: NodeId| !matches!(cx.document.kind(at), Kind::Null);
    if !body.steps.0.0.is_some_and(is_there) {
        cx.key_error(
            at,
            "the workflow has no `steps`",
            "write `steps: [{name: .., tool: .., input: {..}}]`",
        );
        return None;
    }
    let entries = cx.document.entries(at).iter();
    let settings = Settings {
        root: Some(at),
        entries: entries
            .filter(|(key, _)| SETTINGS.contains(&key.as_str()))
            .cloned()
            .collect(),
    };
    let executor = (tool::spec(cx, KIND, &settings), settings);
    let body = ToolBody {
        title: body.title,
        description: body.description,
        version: body.version,
        input_schema: body.input_schema,
        parameters: body.parameters,
        output_schema: body.output_schema,
        call_timeout: body.call_timeout,
        sections: body.sections,
        capabilities: body.capabilities,
        tags: body.tags,
        aliases: body.aliases,
        examples: body.examples,
        late_sections: body.late_sections,
        retryable: body.retryable,
        idempotent: body.idempotent,
        read_only: body.read_only,
        required_permissions: body.required_permissions,
        ..ToolBody::default()
    };
    tool::with_executor(cx, name, (named, at), body, (WrittenAs::Workflow, Some(executor)))
}
