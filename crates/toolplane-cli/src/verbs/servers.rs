use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use toolplane::{
    ListCache as _, RawJson, Toolplane,
    manifest::{HttpTransportSpec, Loaded, ServerSpec, ServerTransport},
};
use toolplane_gateway::OperatorClient;

use super::{gateways, on_plane};
use crate::{
    command::{Format, Options, Servers},
    config,
    exit::Exit,
    failure::Failure,
    output::Console,
    runtime::block_on,
    text,
};

pub(crate) fn run(options: &Options, servers: &Servers, console: Console) -> Result<Exit, Failure> {
    let no_start = match servers {
        Servers::Ls { gateway: true, .. } => return block_on(of_gateways(console)),
        Servers::Ls { no_start, .. } => *no_start,
        Servers::Forget { name } => return block_on(forget(name.as_deref(), console)),
    };
    on_plane(options, console, async |loaded, plane| {
        if no_start {
            plane.recall().await;
        } else {
            plane.list(&plane.local_caller()).await;
        }
        show(&configured(loaded, plane), console)
    })
}

/// Deletes kept lists. The server need not be configured any more.
async fn forget(name: Option<&str>, console: Console) -> Result<Exit, Failure> {
    let store = config::list_store().ok_or_else(|| {
        let failure = Failure::failed("it is not known where lists are kept");
        failure.with_hint("set `$HOME` or `$XDG_CACHE_HOME`")
    })?;
    let n_forgotten = store.forget(name).await.map_err(|error| {
        let folder = store.folder().display();
        Failure::failed(format!("kept lists in `{folder}` cannot be deleted")).with_source(&error)
    })?;
    let folder = store.folder().display().to_string();
    console.value(&json!({"forgotten": n_forgotten, "folder": folder}), || {
        let files = if n_forgotten == 1 { "file" } else { "files" };
        format!("deleted {n_forgotten} {files} with kept lists from {folder}")
    })?;
    Ok(Exit::Done)
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

/// A server in the list: what the toolplane that has it says of it, and where it is configured.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Row {
    name: String,
    /// `ready`, `failed`, `disabled` …
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_state_ms: Option<u64>,
    /// `lazy` or `eager`.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<String>,
    /// `read`, `kept` from an earlier run, or `missing`.
    #[serde(skip_serializing_if = "Option::is_none")]
    lists: Option<String>,
    /// Whether a health check is a part of its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    checked_at_start: Option<bool>,
    /// How many tries its start took so far.
    attempts: u64,
    /// How long it is left alone before it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_in_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<String>,
    n_tools: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_ms: Option<u64>,
    n_restarts: u64,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Why it failed last, if it is well since.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    /// What it says of itself, or the end of its stderr.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// The number of warnings about what it lists, and of entries that are not offered.
    n_warnings: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_warning: Option<String>,
    /// The file with its line.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// The process of the gateway that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway: Option<String>,
}

/// The servers of the configuration, as they are in this process.
fn configured(loaded: &Loaded, plane: &Toolplane) -> Vec<Row> {
    let mut records: Vec<Row> = plane
        .server_records()
        .into_iter()
        .filter_map(|record| serde_json::from_value(record).ok())
        .collect();
    let row = |server: &ServerSpec| {
        let record = records.iter_mut().find(|record| record.name == server.name);
        let disabled = || Row {
            name: server.name.clone(),
            state: "disabled".to_owned(),
            ..Row::default()
        };
        let row = record.map_or_else(disabled, std::mem::take);
        Row {
            transport: Some(transport(server).to_owned()),
            source: Some(server.origin.place.clone()),
            ..row
        }
    };
    loaded.configuration.servers.iter().map(row).collect()
}

fn transport(server: &ServerSpec) -> &'static str {
    match server.transport {
        ServerTransport::Stdio { .. } => "stdio",
        ServerTransport::Http {
            transport: HttpTransportSpec::Sse,
            ..
        } => "sse",
        ServerTransport::Http {
            transport: HttpTransportSpec::WebSocket,
            ..
        } => "websocket",
        ServerTransport::Http { .. } => "http",
    }
}

/// The servers of the gateways that run here, as they are there: nothing is started for it.
async fn of_gateways(console: Console) -> Result<Exit, Failure> {
    let answers = gateways::ask(console, OperatorClient::servers).await?;
    let rows = answers.iter().flat_map(|(gateway, records)| {
        records.iter().map(|record: &RawJson| Row {
            gateway: Some(gateway.process()),
            ..record.to().unwrap_or_default()
        })
    });
    show(&rows.collect::<Vec<_>>(), console)
}

fn show(rows: &[Row], console: Console) -> Result<Exit, Failure> {
    if rows.is_empty() && console.format == Format::Table {
        console.say("no servers");
        return Ok(Exit::Done);
    }
    let first = rows.first().and_then(|row| row.gateway.as_deref());
    let has_many = rows.iter().any(|row| row.gateway.as_deref() != first);
    console.list(rows, |table| {
        let mut header = vec!["NAME", "STATE", "SINCE", "TRIES", "NEXT", "TOOLS", "DETAIL"];
        let has_warnings = rows.iter().any(|row| row.n_warnings > 0);
        if has_warnings {
            header.push("WARNINGS");
        }
        if has_many {
            header.insert(0, "GATEWAY");
        }
        table.header(header).rows(rows.iter().map(|row| {
            let mut cells = cells(row).to_vec();
            if has_warnings {
                cells.push(warnings(row));
            }
            if has_many {
                cells.insert(0, row.gateway.clone().unwrap_or_default());
            }
            cells
        }))
    })?;
    Ok(Exit::Done)
}

fn cells(row: &Row) -> [String; 7] {
    let is_kept = row.lists.as_deref() == Some("kept");
    let kept = is_kept.then_some("its lists are kept from an earlier run");
    let detail = match (row.reason.as_deref(), row.detail.as_deref()) {
        // The end of its stderr, of which the whole is in JSON: a table takes one line.
        (Some(reason), Some(stderr)) => match (first_line(reason), last_line(stderr)) {
            (reason, said) if reason.contains(said) => reason.to_owned(),
            (reason, said) => format!("{reason}; stderr: {said}"),
        },
        (reason, detail) => first_line(reason.or(detail).or(kept).unwrap_or_default()).to_owned(),
    };
    let detail = text::line(&detail);
    let is_known = !matches!(row.state.as_str(), "disabled" | "not started");
    let age = row.in_state_ms.filter(|_| is_known).map(Duration::from_millis);
    let tries = match row.attempts {
        0 => String::new(),
        n => n.to_string(),
    };
    [
        text::line(&row.name).into_owned(),
        row.state.clone(),
        age.map(text::age).unwrap_or_default(),
        tries,
        next(row),
        if is_known || row.n_tools > 0 {
            row.n_tools.to_string()
        } else {
            String::new()
        },
        detail.into_owned(),
    ]
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// The last line that says anything.
fn last_line(text: &str) -> &str {
    let says = |line: &&str| line.chars().any(char::is_alphanumeric);
    text.lines().rfind(says).unwrap_or_default().trim()
}

/// The number of warnings, and the first.
fn warnings(row: &Row) -> String {
    match (row.n_warnings, &row.first_warning) {
        (0, _) => String::new(),
        (n, Some(first)) => format!("{n}: {first}"),
        (n, None) => n.to_string(),
    }
}

/// When it is started.
fn next(row: &Row) -> String {
    match (row.retry_in_ms, row.state.as_str()) {
        (Some(pause), _) => format!("in {}", text::time(Duration::from_millis(pause))),
        (None, "failed" | "not started") => "when needed".to_owned(),
        _ => String::new(),
    }
}

/// How many lines of a failed server's stderr are shown.
const SHOWN_LINES: usize = 5;

/// Says that a server's tools are missing, why, and what it said last.
pub(super) fn warn_of_failure(name: &str, reason: &str, detail: Option<&str>, console: Console) {
    let mut text = format!("the tools of `{name}` are missing: {}", text::line(reason));
    let lines: Vec<&str> = detail.unwrap_or_default().trim_end().lines().collect();
    for line in lines.iter().skip(lines.len().saturating_sub(SHOWN_LINES)) {
        text.push_str("\n  | ");
        text.push_str(&text::line(line));
    }
    console.warn(&text);
}
