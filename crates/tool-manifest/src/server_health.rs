//! How a server is asked whether it is well.

use std::time::Duration;

use raw_json::RawJson;

use crate::{
    field::{Field, Raw},
    node::{Kind, NodeId},
    place::Cx,
    schema_field,
    units::Period,
};

/// How a server is asked whether it is well.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ServerHealthSpec {
    /// How often it is asked while the gateway runs; never if absent.
    pub interval: Option<Duration>,
    /// Whether it is asked whenever it was started, and has failed to start if it is not well.
    pub at_start: bool,
    /// The tool that it is asked by; only whether it is there if absent.
    pub tool: Option<ServerHealthTool>,
}

/// A tool that says whether its server is well, by not failing.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerHealthTool {
    /// The tool, by the server's own name for it.
    pub name: String,
    /// What it is called with, an object.
    pub arguments: RawJson,
}

/// What a file says of it.
pub(crate) struct Written {
    pub(crate) interval: Field<Period>,
    pub(crate) at_start: Field<bool>,
    pub(crate) tool: Field<String>,
    pub(crate) arguments: Raw,
}

pub(crate) fn read(cx: Cx<'_>, written: Written) -> ServerHealthSpec {
    let interval = interval(cx, written.interval);
    let at_start = written.at_start.get().unwrap_or_default();
    let tool = tool(cx, written.tool, written.arguments);
    if let Some((at, _)) = &tool
        && interval.is_none()
        && !at_start
    {
        cx.error(
            *at,
            "the tool is never called",
            "say when: `health_check_at_start: true` or `health_check_interval: 30s`",
        );
    }
    ServerHealthSpec {
        interval,
        at_start,
        tool: tool.map(|(_, tool)| tool),
    }
}

fn interval(cx: Cx<'_>, field: Field<Period>) -> Option<Duration> {
    let (at, Period(period)) = field.located()?;
    if period < Duration::from_secs(1) {
        cx.error(at, "a server is asked once a second at most", "write `30s`");
        return None;
    }
    Some(period)
}

fn tool(cx: Cx<'_>, name: Field<String>, arguments: Raw) -> Option<(NodeId, ServerHealthTool)> {
    let Some((at, name)) = name.located() else {
        if let Some(at) = arguments.0 {
            let hint = "name the tool by `health_check_tool`";
            cx.error(at, "these are the arguments of no tool", hint);
        }
        return None;
    };
    let arguments = match arguments.0 {
        None => RawJson::object(),
        Some(at) if matches!(cx.document.kind(at), Kind::Map(_)) => schema_field::json(cx, at)?,
        Some(at) => {
            let found = cx.document.describe(at);
            let message = format!("expected the arguments of a tool, found {found}");
            cx.error(at, message, "write a map, such as `{query: select 1}`");
            return None;
        }
    };
    Some((at, ServerHealthTool { name, arguments }))
}
