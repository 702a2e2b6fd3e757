pub(super) mod definitions;
mod disabled;
mod search;
mod show;
mod withheld;

use serde::Serialize;
use serde_json::Value;
use toolplane::{
    RawJson, Toolplane,
    core::{SourceState, Tool},
};

use self::disabled::DisabledTool;
use super::on_plane;
use crate::{
    command::{Format, Options, Tools},
    error::CliError,
    exit::Exit,
    output::{Console, text},
    process::runtime::block_on,
};

pub(crate) fn run(options: &Options, tools: Tools, console: Console) -> Result<Exit, CliError> {
    match tools {
        Tools::Ls { server, wide } => on_plane(options, console, async |loaded, plane| {
            if let Some(server) = &server {
                super::servers::must_exist(loaded, server)?;
            }
            list(plane, server.as_deref(), wide, console).await
        }),
        Tools::Search(search) => on_plane(options, console, async |_, plane| {
            search::search(plane, &search, console).await
        }),
        Tools::Show { name } => on_plane(options, console, async |_, plane| {
            let tool = plane.tool(&name, &plane.local_caller()).await?;
            let disabled = disabled::for_tool(&disabled::all(console).await, &tool);
            let spelling = plane.short_spelling(tool.name());
            show::show(
                &tool,
                spelling.as_deref(),
                plane.server_record_of(&tool),
                &disabled,
                console,
            )
        }),
        Tools::Definitions(wanted) => on_plane(options, console, async |_, plane| {
            definitions::print(plane, &wanted, console).await
        }),
        Tools::Versions(verb) => super::registry::run(options, verb, console),
        Tools::Diff { name, other } => match name.as_deref().filter(|name| name.contains('@')) {
            Some(version) => super::registry::diff(options, version, other.as_deref(), console),
            None if other.is_some() => Err(CliError::usage("only `TOOL@VERSION` is compared with a version")),
            None => withheld::diff(options, name.as_deref(), console),
        },
        // A URI of a resource may have an `@`.
        Tools::Accept(accept) => match accept
            .name
            .as_deref()
            .filter(|name| name.contains('@') && !name.contains(':'))
        {
            Some(version) => super::registry::accept(options, version, &accept, console),
            None => withheld::accept(options, &accept, console),
        },
        Tools::Disable { name, reason } => block_on(disabled::disable(&name, reason.as_deref(), console)),
        Tools::Enable { name } => block_on(disabled::enable(&name, console)),
    }
}

/// A tool in the list.
#[derive(Serialize)]
struct ToolRow<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    /// The server that runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    /// State of that server.
    #[serde(skip_serializing_if = "Option::is_none")]
    server_state: Option<Value>,
    /// Place of the definition: the server, or the file and line.
    source: &'a str,
    /// Executor kind.
    kind: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    capabilities: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tags: &'a [String],
    /// Gateways that have disabled it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    disabled: Vec<DisabledTool>,
    input_schema: &'a RawJson,
}

async fn list(
    plane: &Toolplane,
    server: Option<&str>,
    wide: bool,
    console: Console,
) -> Result<Exit, CliError> {
    let view = plane.view(&plane.local_caller()).await;
    let disabled = disabled::all(console).await;
    let rows: Vec<ToolRow<'_>> = view
        .tools()
        .iter()
        .filter(|tool| server.is_none() || server == server_of(tool))
        .map(|tool| {
            row(
                tool,
                plane.server_record_of(tool),
                disabled::for_tool(&disabled, tool),
            )
        })
        .collect();
    let failed = warn_of_missing(plane, server, console);
    withheld::warn(plane, server, console).await;
    for row in &rows {
        disabled::warn(row.name, &row.disabled, console);
    }
    if rows.is_empty() && console.format == Format::Table {
        console.say("no tools");
    } else {
        let has_states = rows.iter().any(|row| !state(row).is_empty());
        console.list(&rows, |table| {
            let states: &[&str] = if has_states { &["STATE"] } else { &[] };
            let origin: &[&str] = if wide {
                &["VERSION", "KIND", "ORIGIN"]
            } else {
                &["SOURCE"]
            };
            let header = [&["NAME"][..], states, origin, &["DESCRIPTION"]].concat();
            table
                .header(header)
                .rows(rows.iter().map(|row| cells(row, has_states, wide)))
        })?;
    }
    // Without a server option, the remaining tools are a success.
    Ok(if failed && server.is_some() {
        Exit::Unavailable
    } else {
        Exit::Done
    })
}

fn cells(row: &ToolRow<'_>, has_states: bool, wide: bool) -> Vec<String> {
    let mut cells = vec![row.name.to_owned()];
    if has_states {
        cells.push(state(row).to_owned());
    }
    if wide {
        cells.push(row.version.unwrap_or_default().to_owned());
        cells.push(row.kind.to_owned());
        cells.push(row.source.to_owned());
    } else {
        cells.push(row.server.unwrap_or(row.source).to_owned());
    }
    cells.push(text::line(text::first_line(row.description)).into_owned());
    cells
}

/// Returns the reason why a call may wait or fail: the tool is disabled, or its server is not ready.
fn state<'a>(row: &'a ToolRow<'_>) -> &'a str {
    if !row.disabled.is_empty() {
        return "disabled";
    }
    let server = row.server_state.as_ref();
    let state = server.and_then(|server| server["state"].as_str());
    state.filter(|state| *state != "ready").unwrap_or_default()
}

/// Returns the server or endpoint that runs a tool, as its settings name it.
pub(super) fn server_of(tool: &Tool) -> Option<&str> {
    let config = &tool.descriptor().executor.config;
    config.get("server").or_else(|| config.get("endpoint"))?.as_str()
}

fn row(tool: &Tool, server_state: Option<Value>, disabled: Vec<DisabledTool>) -> ToolRow<'_> {
    let descriptor = tool.descriptor();
    ToolRow {
        name: tool.name(),
        title: descriptor.title.as_deref(),
        description: &descriptor.description,
        version: descriptor.version.as_deref(),
        server: server_of(tool),
        server_state,
        source: &descriptor.origin.place,
        kind: &descriptor.executor.kind,
        capabilities: &descriptor.metadata.capabilities,
        tags: &descriptor.metadata.tags,
        disabled,
        input_schema: &descriptor.input_schema,
    }
}

/// Warns of tools and servers that are missing from a list. Returns `true` if a server failed.
fn warn_of_missing(plane: &Toolplane, server: Option<&str>, console: Console) -> bool {
    let asked_for = |name: &str| server.is_none_or(|server| server == name);
    let mut failed = false;
    for (name, status) in plane.sources() {
        if let SourceState::Failed(reason) = &status.state
            && asked_for(&name)
        {
            failed = true;
            super::servers::warn_of_failure(&name, reason, status.detail.as_deref(), console);
        }
    }
    for refused in plane.refused() {
        if asked_for(&refused.source) {
            let (name, source) = (text::line(&refused.name), &refused.source);
            let reason = text::line(&refused.reason);
            console.warn(&format!(
                "the {} `{name}` of `{source}` is not offered: {reason}",
                refused.feature.as_str()
            ));
        }
    }
    failed
}
