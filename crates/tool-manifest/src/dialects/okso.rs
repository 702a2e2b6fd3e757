use serde::Deserialize;
use tool_core::{Metadata, Overrides};
use tool_settings::{Field, NodeId, Raw};

use crate::{
    document::place::Cx,
    loading::draft::Draft,
    tools::{
        schema_field,
        tool::{self, Parts, Settings, WrittenAs},
    },
};

/// The settings of a tool of a command endpoint: okso's own names, and the endpoint that has it.
const SETTINGS: [&str; 4] = ["endpoint", "command", "origin", "safety"];

/// A tool as an okso endpoint describes it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OksoBody {
    name: Field<String>,
    description: Field<String>,
    endpoint: Field<String>,
    command: Field<String>,
    origin: Field<String>,
    safety: Field<String>,
    input_schema: Raw,
    result_schema: Raw,
}

/// Takes a tool of okso.
pub(crate) fn take(cx: Cx<'_>, at: NodeId, draft: &mut Draft) {
    let Some(body) = cx.read::<OksoBody>(at) else {
        return;
    };
    if let Some((at, origin)) = body.origin.located()
        && !matches!(origin.as_str(), "local" | "remote")
    {
        cx.error(at, "an origin is `local` or `remote`", "");
    }
    if body.command.is_wrong() || body.safety.is_wrong() || body.endpoint.is_wrong() {
        return;
    }
    let Some((named, name)) = body.name.located() else {
        return;
    };
    let entries = cx.document.entries(at).iter();
    let settings = Settings {
        root: Some(at),
        entries: entries
            .filter(|(key, _)| SETTINGS.contains(&key.as_str()))
            .cloned()
            .collect(),
    };
    let parts = Parts {
        written_as: WrittenAs::Document,
        name,
        named,
        at,
        title: None,
        description: body.description,
        version: None,
        input_schema: schema_field::arguments(cx, body.input_schema),
        output_schema: schema_field::schema(cx, body.result_schema),
        timeout: None,
        executor: Some((tool::spec(cx, "endpoint", &settings), settings)),
        metadata: Metadata::default(),
        overrides: Overrides::default(),
    };
    if let Some(tool) = tool::assemble(cx, parts) {
        draft.put_tool(cx.report, tool);
    }
}
