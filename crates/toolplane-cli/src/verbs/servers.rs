use serde::Serialize;
use toolplane::{
    Toolplane,
    core::{SourceState, SourceStatus},
    manifest::{HttpTransport, Loaded, ServerTransport},
};

use super::on_plane;
use crate::{
    command::{Format, Options, Servers},
    exit::Exit,
    failure::Failure,
    output::Console,
    text,
};

pub(crate) fn run(options: &Options, servers: &Servers, console: Console) -> Result<Exit, Failure> {
    let Servers::Ls = servers;
    on_plane(options, console, async |loaded, plane| {
        plane.list(&plane.local_caller()).await;
        list(loaded, plane, console)
    })
}

/// Refuses the name of a server that is not configured.
pub(super) fn must_exist(loaded: &Loaded, name: &str) -> Result<(), Failure> {
    if loaded
        .configuration
        .servers
        .iter()
        .any(|server| server.name == name)
    {
        return Ok(());
    }
    let names = loaded
        .configuration
        .servers
        .iter()
        .map(|server| format!("`{}`", server.name));
    let names: Vec<String> = names.collect();
    let failure = Failure::new(
        Exit::NotFound,
        "not_found",
        format!("there is no server `{name}`"),
    );
    Err(if names.is_empty() {
        failure.with_hint("the configuration has no servers")
    } else {
        failure.with_hint(format!("there are {}", names.join(", ")))
    })
}

/// A server in the list.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    /// `ready`, `failed`, `disabled` …
    state: &'static str,
    transport: &'static str,
    n_tools: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_ms: Option<u64>,
    n_restarts: u64,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// What it says of itself, or the end of its stderr.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// The file with its line.
    source: &'a str,
}

fn list(loaded: &Loaded, plane: &Toolplane, console: Console) -> Result<Exit, Failure> {
    let sources = plane.sources();
    let rows: Vec<Row<'_>> = loaded
        .configuration
        .servers
        .iter()
        .map(|server| {
            let status = sources
                .iter()
                .find(|(name, _)| *name == server.name)
                .map(|(_, status)| status);
            Row {
                name: &server.name,
                transport: match server.transport {
                    ServerTransport::Stdio { .. } => "stdio",
                    ServerTransport::Http {
                        transport: HttpTransport::Sse,
                        ..
                    } => "sse",
                    ServerTransport::Http { .. } => "http",
                },
                state: status.map_or("disabled", |status| status.state.as_str()),
                n_tools: status.map_or(0, |status| status.n_tools),
                start_ms: status.and_then(|status| status.start_took).map(milliseconds),
                n_restarts: status.map_or(0, |status| status.n_restarts),
                reason: status.and_then(failure),
                detail: status.and_then(|status| status.detail.clone()),
                source: &server.origin.place,
            }
        })
        .collect();
    if rows.is_empty() && console.format == Format::Table {
        console.say("no servers");
        return Ok(Exit::Done);
    }
    console.list(&rows, |table| {
        let header = ["NAME", "STATE", "TRANSPORT", "TOOLS", "START", "DETAIL"];
        table.header(header).rows(rows.iter().map(cells))
    })?;
    Ok(Exit::Done)
}

fn cells(row: &Row<'_>) -> [String; 6] {
    let detail = row
        .reason
        .as_deref()
        .or(row.detail.as_deref())
        .unwrap_or_default();
    // The whole of it is in JSON; a table takes one line.
    let detail = text::printable(detail.lines().next().unwrap_or_default());
    [
        row.name.to_owned(),
        row.state.to_owned(),
        row.transport.to_owned(),
        row.n_tools.to_string(),
        row.start_ms
            .map(|ms| text::time(std::time::Duration::from_millis(ms)))
            .unwrap_or_default(),
        detail.into_owned(),
    ]
}

pub(super) fn milliseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// How many lines of a failed server's stderr are shown.
const SHOWN_LINES: usize = 5;

/// Says that a server's tools are missing, why, and what it said last.
pub(super) fn warn_of_failure(name: &str, reason: &str, detail: Option<&str>, console: Console) {
    let mut text = format!("the tools of `{name}` are missing: {}", text::printable(reason));
    let lines: Vec<&str> = detail.unwrap_or_default().trim_end().lines().collect();
    for line in lines.iter().skip(lines.len().saturating_sub(SHOWN_LINES)) {
        text.push_str("\n  | ");
        text.push_str(&text::printable(line));
    }
    console.warn(&text);
}

fn failure(status: &SourceStatus) -> Option<String> {
    match &status.state {
        SourceState::Failed(reason) => Some(reason.clone()),
        _ => None,
    }
}
