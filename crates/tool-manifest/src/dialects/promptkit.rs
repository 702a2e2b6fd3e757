use serde::Deserialize;
use serde_json::{Map, Value};
use tool_core::{ExecutorSpec, Metadata, Overrides};
use tool_settings::{Field, NodeId, Raw};

use crate::{
    dialects::manifest::Manifest,
    document::{place::Cx, suggest},
    loading::draft::Draft,
    servers::server::milliseconds,
    tools::{
        schema_field,
        tool::{self, Parts, Settings, WrittenAs},
    },
};

/// The modes that PromptKit knows and we run.
const MODES: [&str; 3] = ["mock", "live", "mcp"];

/// The content of PromptKit's `kind: Tool`, as in its schema `v1alpha1` and in the earlier `v1`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ToolSpec {
    name: Field<String>,
    description: Field<String>,
    input_schema: Raw,
    output_schema: Raw,
    mode: Field<String>,
    timeout_ms: Field<u64>,
    mock_result: Raw,
    mock_template: Field<String>,
    mock_parts: Raw,
    http: Raw,
    exec: Raw,
    client: Raw,
}

/// Takes a tool of PromptKit.
pub(crate) fn take(cx: Cx<'_>, at: NodeId, draft: &mut Draft) {
    let Some(manifest) = cx.read::<Manifest<ToolSpec>>(at) else {
        return;
    };
    let outer = manifest
        .metadata
        .get()
        .map(|metadata| metadata.name)
        .unwrap_or_default();
    if manifest.spec.is_absent() {
        cx.key_error(at, "the manifest has no `spec`", "");
    }
    let Some((spec_at, spec)) = manifest.spec.located() else {
        return;
    };
    let timeout_ms = spec.timeout_ms.as_ref().copied();
    let Some((named, name)) = spec.name.located().or(outer.located()) else {
        cx.key_error(spec_at, "the tool has no name", "add `name: ..` to `metadata`");
        return;
    };
    let used = Used {
        mode: spec.mode,
        mock_result: spec.mock_result,
        mock_template: spec.mock_template,
        mock_parts: spec.mock_parts,
        http: spec.http,
        others: [("exec", spec.exec), ("client", spec.client)],
    };
    let executor = executor(cx, spec_at, used);
    let is_unrouted = executor.as_ref().is_some_and(|(spec, _)| spec.kind == "mcp");
    let parts = Parts {
        written_as: WrittenAs::PromptKit,
        name,
        named,
        at: spec_at,
        title: None,
        description: spec.description,
        version: None,
        input_schema: schema_field::arguments(cx, spec.input_schema),
        output_schema: schema_field::schema(cx, spec.output_schema),
        // PromptKit takes 0 for its default.
        timeout: if timeout_ms == Some(0) {
            None
        } else {
            milliseconds(cx, spec.timeout_ms)
        },
        executor,
        metadata: Metadata::default(),
        overrides: Overrides::default(),
    };
    if let Some(mut tool) = tool::assemble(cx, parts) {
        tool.is_unrouted = is_unrouted;
        draft.put_tool(cx.report, tool);
    }
}

/// The fields that a mode uses.
struct Used {
    mode: Field<String>,
    mock_result: Raw,
    mock_template: Field<String>,
    mock_parts: Raw,
    http: Raw,
    others: [(&'static str, Raw); 2],
}

fn executor(cx: Cx<'_>, spec: NodeId, used: Used) -> Option<(ExecutorSpec, Settings)> {
    let is_wrong = used.mode.is_wrong();
    let Some((at, mode)) = used.mode.located() else {
        if !is_wrong {
            cx.key_error(
                spec,
                "the tool has no `mode`",
                format!("there are {}", suggest::list(&MODES)),
            );
        }
        return None;
    };
    if MODES.contains(&mode.as_str()) {
        for (name, raw) in used.others {
            if let Some(at) = raw.0 {
                cx.warning(at, format!("`{name}` is not used in mode `{mode}`"), "");
            }
        }
    }
    match mode.as_str() {
        "mock" => mock(cx, spec, used.mock_result, &used.mock_template, used.mock_parts),
        "live" => live(cx, spec, used.http),
        "mcp" => {
            let spec = ExecutorSpec::new("mcp").with_config(Value::Object(Map::new()));
            Some((spec, Settings::default()))
        }
        "exec" | "client" => {
            cx.error(
                at,
                format!("PromptKit's mode `{mode}` is not supported"),
                format!("there are {}", suggest::list(&MODES)),
            );
            None
        }
        other => {
            cx.error(
                at,
                format!("unknown mode `{}`", suggest::shown(other)),
                suggest::value(other, &MODES),
            );
            None
        }
    }
}

fn mock(
    cx: Cx<'_>,
    spec: NodeId,
    result: Raw,
    template: &Field<String>,
    parts: Raw,
) -> Option<(ExecutorSpec, Settings)> {
    if let Some(at) = parts.0 {
        cx.key_error(
            at,
            "PromptKit's `mock_parts` are not supported",
            "give the result as `mock_result`",
        );
        return None;
    }
    let entry = match (result.0, template.given()) {
        (Some(_), Some(template)) => {
            cx.key_error(
                template,
                "a mock has either a `mock_result` or a `mock_template`",
                "remove one",
            );
            return None;
        }
        (Some(result), None) => ("result".to_owned(), result),
        (None, Some(template)) => ("template".to_owned(), template),
        (None, None) => {
            if !template.is_wrong() {
                cx.key_error(
                    spec,
                    "a tool in mode `mock` has a `mock_result` or a `mock_template`",
                    "add one of them",
                );
            }
            return None;
        }
    };
    Some(with_settings(cx, "mock", spec, vec![entry]))
}

fn live(cx: Cx<'_>, spec: NodeId, http: Raw) -> Option<(ExecutorSpec, Settings)> {
    let Some(at) = http.0 else {
        cx.key_error(
            spec,
            "a tool in mode `live` has an `http` block",
            "add `http: {url: .., method: ..}`",
        );
        return None;
    };
    if !cx.expect_map(at, "write `{url: .., method: ..}`") {
        return None;
    }
    if let Some(multimodal) = cx.document.get(at, "multimodal") {
        cx.key_error(
            multimodal,
            "PromptKit's `multimodal` is not supported",
            "remove it",
        );
        return None;
    }
    Some(with_settings(cx, "http", at, cx.document.entries(at).to_vec()))
}

fn with_settings(
    cx: Cx<'_>,
    kind: &str,
    root: NodeId,
    entries: Vec<(String, NodeId)>,
) -> (ExecutorSpec, Settings) {
    let root = Some(root);
    let settings = Settings { root, entries };
    (tool::spec(cx, kind, &settings), settings)
}
