use schemars::JsonSchema;
use serde::Deserialize;
use tool_settings::{Entries, Field, NodeId, Text};

use crate::{
    config::policy::PolicyBody,
    dialects::promptkit,
    document::{place::Cx, suggest},
    loading::draft::Draft,
    servers::server::{self, ServerBody},
    tools::{
        tool::{self, ToolBody},
        workflow::{self, WorkflowBody},
    },
};

/// The version of our own manifests.
pub(crate) const API_VERSION: &str = "toolplane.dev/v1";
/// The version of PromptKit's manifests.
pub(crate) const PROMPTKIT_VERSION: &str = "promptkit.altairalabs.ai/v1alpha1";
/// Prefix of the versions of PromptKit's manifests.
const PROMPTKIT: &str = "promptkit.altairalabs.ai/";
/// The kinds of our own manifests.
pub(crate) const KINDS: [&str; 4] = ["Tool", "McpServer", "Policy", "Workflow"];

/// A document that describes one thing, in the manner of Kubernetes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Manifest_of_{S}", bound = "S: JsonSchema + Default", extend("required" = ["apiVersion", "kind", "metadata", "spec"]))]
pub(crate) struct Manifest<S> {
    /// The JSON Schema of this file, for editors.
    #[serde(rename = "$schema")]
    schema: Field<String>,
    /// Owner and version of the format.
    #[serde(rename = "apiVersion")]
    api_version: Field<String>,
    /// Kind of the thing that is described.
    kind: Field<String>,
    /// Name and labels.
    pub(crate) metadata: Field<ObjectMeta>,
    /// Content, by kind.
    pub(crate) spec: Field<S>,
}

/// Name and labels of a manifest.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ObjectMeta {
    /// The name.
    pub(crate) name: Field<String>,
    /// Namespace; for people.
    namespace: Field<String>,
    /// Keys and values to find it by; for people.
    labels: Field<Entries<Text>>,
    /// Further keys and values; for people.
    annotations: Field<Entries<Text>>,
}

/// Takes a document that has an `apiVersion`.
pub(crate) fn take(cx: Cx<'_>, at: NodeId, api_version: NodeId, draft: &mut Draft) {
    let version = cx.document.text(api_version).unwrap_or_default();
    let kind = cx.document.get(at, "kind");
    let kind_text = kind.and_then(|kind| cx.document.text(kind));
    let Some((kind, kind_text)) = kind.zip(kind_text) else {
        cx.key_error(
            kind.unwrap_or(api_version),
            "a manifest says its `kind`",
            format!("there are {}", suggest::list(&KINDS)),
        );
        return;
    };
    if version.starts_with(PROMPTKIT) {
        if kind_text == "Tool" {
            promptkit::take(cx, at, draft);
        } else {
            let shown = suggest::shown(kind_text);
            cx.warning(
                kind,
                format!("PromptKit's `{shown}` is no tool and is left out"),
                "",
            );
        }
    } else if version == API_VERSION {
        take_own(cx, at, kind, kind_text, draft);
    } else {
        cx.error(
            api_version,
            format!("unknown `apiVersion` `{}`", suggest::shown(version)),
            format!("there are `{API_VERSION}` and `{PROMPTKIT}v1alpha1`"),
        );
    }
}

fn take_own(cx: Cx<'_>, at: NodeId, kind: NodeId, kind_text: &str, draft: &mut Draft) {
    match kind_text {
        "Tool" => {
            let Some((name, spec_at, body)) = open::<ToolBody>(cx, at) else {
                return;
            };
            if let Some((named, name)) = name
                && let Some(tool) = tool::tool(cx, &name, named, spec_at, body)
            {
                draft.put_tool(cx.report, tool);
            }
        }
        "Workflow" => {
            let Some((name, spec_at, body)) = open::<WorkflowBody>(cx, at) else {
                return;
            };
            if let Some((named, name)) = name
                && let Some(tool) = workflow::workflow(cx, &name, named, spec_at, body)
            {
                draft.put_tool(cx.report, tool);
            }
        }
        "McpServer" => {
            let Some((name, spec_at, body)) = open::<ServerBody>(cx, at) else {
                return;
            };
            if let Some((named, name)) = name
                && let Some(server) = server::server(cx, &name, spec_at, body)
            {
                draft.add_server(cx, named, spec_at, server);
            }
        }
        "Policy" => {
            if let Some((_, _, body)) = open::<PolicyBody>(cx, at) {
                draft.add_policy(cx, body);
            }
        }
        other => cx.error(
            kind,
            format!("unknown kind `{}`", suggest::shown(other)),
            suggest::value(other, &KINDS),
        ),
    }
}

/// The name with its place, and the content with its place.
type Opened<S> = (Option<(NodeId, String)>, NodeId, S);

/// Reads a manifest: its name, which is reported if it is missing, and its content.
fn open<S: for<'de> Deserialize<'de> + Default>(cx: Cx<'_>, at: NodeId) -> Option<Opened<S>> {
    let manifest: Manifest<S> = cx.read(at)?;
    let metadata = manifest.metadata.located();
    let meta_at = metadata.as_ref().map_or(at, |(at, _)| *at);
    let name = metadata.map(|(_, meta)| meta.name).unwrap_or_default();
    if name.is_absent() {
        cx.key_error(
            meta_at,
            "the manifest has no `metadata.name`",
            "add `metadata: {name: ..}`",
        );
    }
    if manifest.spec.is_absent() {
        cx.key_error(at, "the manifest has no `spec`", "");
    }
    let (spec_at, body) = manifest.spec.located()?;
    Some((name.located(), spec_at, body))
}
