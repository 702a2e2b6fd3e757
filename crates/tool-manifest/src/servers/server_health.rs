//! Health check of a server.

use std::time::Duration;

use raw_json::RawJson;
use tool_settings::{Field, Period, Raw};

use crate::{
    Diagnostic,
    document::{node::Kind, place::Cx},
    tools::schema_field,
};

/// Settings of a server's health check.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ServerHealthSpec {
    /// Interval of the check while the gateway runs; never if absent. A server that sets none has
    /// [`HealthSpec::server_interval`](crate::HealthSpec::server_interval).
    pub interval: Option<Duration>,
    /// `true` if each start is checked: a server that is not healthy has failed to start.
    pub at_start: bool,
    /// Tool that checks the server; if absent, only its presence is checked.
    pub tool: Option<ServerHealthTool>,
}

/// A tool that checks its server: the server is healthy unless the tool fails.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerHealthTool {
    /// The tool, by the server's own name for it.
    pub name: String,
    /// Arguments of the tool, an object.
    pub arguments: RawJson,
}

/// The keys of a file.
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
    ServerHealthSpec {
        interval,
        at_start,
        tool,
    }
}

/// Reads the interval of the check; with 0s there is none.
pub(crate) fn interval(cx: Cx<'_>, field: Field<Period>) -> Option<Duration> {
    let (at, Period(period)) = field.located()?;
    if !period.is_zero() && period < Duration::from_secs(1) {
        cx.error(at, "a server is asked once a second at most", "write `30s`");
        return None;
    }
    Some(period)
}

impl ServerHealthSpec {
    /// Takes the usual interval if there is none of its own. Returns the problem of the whole, if there is one.
    pub(crate) fn settle(&mut self, usual: Option<Duration>) -> Option<Diagnostic> {
        self.interval = self.interval.or(usual).filter(|interval| !interval.is_zero());
        let is_asked = self.interval.is_some() || self.at_start;
        (self.tool.is_some() && !is_asked).then(|| {
            Diagnostic::error("the `health_check_tool` is never called").with_hint(
                "say when: `health_check_at_start: true` or `health_check_interval: 30s`, or \
                 `health: {server_interval: 30s}` for all servers",
            )
        })
    }
}

fn tool(cx: Cx<'_>, name: Field<String>, arguments: Raw) -> Option<ServerHealthTool> {
    let Some(name) = name.get() else {
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
    Some(ServerHealthTool { name, arguments })
}
