mod proposed;

use std::{fmt::Write, io, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::json;
use toolplane::{
    ListCache as _, RawJson, Toolplane,
    core::{Origin, rfc3339},
    manifest::{HttpTransportSpec, Loaded, ServerSpec, ServerTransport},
};
use toolplane_gateway::OperatorClient;

use super::on_plane;
use crate::{
    command::{Format, Options, Servers},
    config,
    error::CliError,
    exit::Exit,
    gateways,
    output::{Console, text},
    process::runtime::block_on,
    store::{OpenStore, open_store, stored_place},
};

pub(crate) fn run(options: &Options, servers: &Servers, console: Console) -> Result<Exit, CliError> {
    let no_start = match servers {
        Servers::Ls { gateway: true, .. } => return block_on(list_of_gateways(console)),
        Servers::Ls { no_start, .. } => *no_start,
        Servers::Proposed => return block_on(proposed::list(options, console)),
        Servers::Approve { name, hosts } => {
            return block_on(proposed::approve(options, name, hosts, console));
        }
        Servers::Reject { name } => return block_on(proposed::reject(options, name, console)),
        Servers::Forget { name } => return block_on(forget(options, name.as_deref(), console)),
    };
    on_plane(options, console, async |loaded, plane| {
        if no_start {
            plane.recall().await;
        } else {
            plane.view(&plane.local_caller()).await;
        }
        let mut rows = configured(loaded, plane);
        if let Some(store) = open_store(loaded).await? {
            add_stored(&mut rows, &store, console).await;
        }
        show(&rows, console)
    })
}

/// Adds what the store knows about servers.
async fn add_stored(rows: &mut [ServerRow], store: &OpenStore, console: Console) {
    let (servers, kept) = match (store.tools.servers().await, store.texts.kept_at().await) {
        (Ok(servers), Ok(kept)) => (servers, kept),
        (Err(error), _) => return not_shown(&error, console),
        (_, Err(error)) => return not_shown(&error, console),
    };
    for row in rows {
        let kept = kept.iter().find(|(name, _)| *name == row.name);
        row.lists_kept_at = kept.map(|(_, at)| rfc3339(*at));
        let is_stored = row.source.as_deref() == Some(&stored_place(store, &row.name));
        let server = servers
            .iter()
            .find(|server| is_stored && *server.name == *row.name);
        row.official = server.map(|server| server.is_official);
    }
}

fn not_shown(error: &dyn std::error::Error, console: Console) {
    let reason = text::line(&error.to_string()).into_owned();
    console.warn(&format!(
        "what the store knows about servers is not shown: {reason}"
    ));
}

/// Deletes kept lists, also those of servers that are no longer configured: on this machine, and in the store if the configuration
/// names one.
async fn forget(options: &Options, name: Option<&str>, console: Console) -> Result<Exit, CliError> {
    let n_stored = forget_stored(options, name, console).await?;
    let store = config::list_store().ok_or_else(|| {
        let failure = CliError::failed("no directory for kept lists");
        failure.with_hint("set `$HOME` or `$XDG_CACHE_HOME`")
    })?;
    let n_forgotten = store.forget(name).await.map_err(|error| {
        let folder = store.folder().display();
        CliError::failed(format!("kept lists in `{folder}` cannot be deleted")).with_source(&error)
    })?;
    forget_answers()?;
    let folder = store.folder().display().to_string();
    let mut report = json!({"forgotten": n_forgotten, "folder": folder});
    if let Some((place, n)) = &n_stored {
        report["stored"] = json!({"forgotten": n, "store": place});
    }
    console.value(&report, || {
        let files = if n_forgotten == 1 { "file" } else { "files" };
        let mut said = format!("deleted {n_forgotten} {files} with kept lists from {folder}");
        if let Some((place, n)) = n_stored {
            let _ = write!(said, "\ndeleted {} from {place}", text::count(n, "kept list"));
        }
        said
    })?;
    Ok(Exit::Done)
}

/// Deletes the first answers of gateways, which contain tools of all their servers.
fn forget_answers() -> Result<(), CliError> {
    let Some(answers) = config::answers_folder() else {
        return Ok(());
    };
    match answers.sweep(0, |name| name.ends_with(config::ANSWERS_ENDING)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            let folder = answers.path().display();
            let message = format!("first answers in `{folder}` cannot be deleted");
            Err(CliError::failed(message).with_source(&error))
        }
        _ => Ok(()),
    }
}

/// Deletes kept lists in the store of the configuration. Returns its name and their number; `None` if no configuration names one.
async fn forget_stored(
    options: &Options,
    name: Option<&str>,
    console: Console,
) -> Result<Option<(String, usize)>, CliError> {
    let Ok(files) = config::files(options) else {
        return Ok(None);
    };
    let loaded = config::read(files, console)?;
    let store = open_store(&loaded).await?.filter(|store| store.is_named);
    let Some(store) = store else {
        return Ok(None);
    };
    let n_forgotten = store.texts.forget(name).await.map_err(|error| {
        let message = "kept lists in the store cannot be deleted";
        CliError::new(Exit::Unavailable, "unavailable", message).with_source(&error)
    })?;
    Ok(Some((store.tools.name().to_owned(), n_forgotten)))
}

/// Returns an error if no server of this name is configured.
pub(super) fn must_exist(loaded: &Loaded, name: &str) -> Result<(), CliError> {
    let servers = loaded.configuration.servers.iter().map(|server| &server.name);
    let endpoints = loaded.configuration.endpoints.iter();
    let known: Vec<_> = servers.chain(endpoints.map(|endpoint| &endpoint.name)).collect();
    if known.iter().any(|known| *known == name) {
        return Ok(());
    }
    let names: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    let failure = CliError::new(
        Exit::NotFound,
        "not_found",
        format!("there is no server `{name}`"),
    );
    Err(if names.is_empty() {
        failure.with_hint("the configuration has no servers")
    } else {
        failure.with_hint(format!("known servers: {}", names.join(", ")))
    })
}

/// A server in the list: its state in this process or in a gateway, and its place in the configuration.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct ServerRow {
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
    /// Time at which `lists` were last kept in the store that the configuration names.
    #[serde(skip_serializing_if = "Option::is_none")]
    lists_kept_at: Option<String>,
    /// `true` if the server is one of the store, and the operator vouches for it as official.
    #[serde(skip_serializing_if = "Option::is_none")]
    official: Option<bool>,
    /// `true` if a health check is a part of its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    checked_at_start: Option<bool>,
    /// Number of attempts to start it so far.
    attempts: u64,
    /// Time until the next attempt to start it.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_in_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<String>,
    /// Level of the sandbox in which its program was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<String>,
    n_tools: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_ms: Option<u64>,
    n_restarts: u64,
    /// Reason of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Last failure of a server that is healthy again.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    /// Identity of the server, or the end of its stderr.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// Number of warnings about its lists, and of entries that are not offered.
    n_warnings: u64,
    /// Number of its definitions that are withheld.
    n_withheld: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_warning: Option<String>,
    /// File and line of its configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// Process id of its gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway: Option<String>,
}

/// Transport of a server that is never started.
const NEVER_STARTED: &str = "none";

/// Returns the servers and endpoints of the configuration with their state in this process.
fn configured(loaded: &Loaded, plane: &Toolplane) -> Vec<ServerRow> {
    let mut records: Vec<ServerRow> = plane
        .server_records()
        .into_iter()
        .filter_map(|record| serde_json::from_value(record).ok())
        .collect();
    let servers = loaded.configuration.servers.iter();
    let servers = servers.map(|server| (&server.name, &server.origin, transport(server), refusal(server)));
    let endpoints = loaded.configuration.endpoints.iter();
    let endpoints = endpoints.map(|endpoint| (&endpoint.name, &endpoint.origin, "endpoint", None));
    let row = |(name, origin, transport, refusal): (&String, &Origin, &'static str, Option<&String>)| {
        let record = records.iter_mut().find(|record| record.name == *name);
        let disabled = || ServerRow {
            name: name.clone(),
            state: "disabled".to_owned(),
            ..ServerRow::default()
        };
        let row = match (record, refusal) {
            (None, _) => disabled(),
            (Some(record), None) => std::mem::take(record),
            (Some(record), Some(reason)) => refused(std::mem::take(record), reason),
        };
        ServerRow {
            transport: Some(transport.to_owned()),
            source: Some(origin.place.clone()),
            ..row
        }
    };
    servers.chain(endpoints).map(row).collect()
}

/// Returns the row of a server that is never started, whether or not a start was attempted.
fn refused(row: ServerRow, reason: &str) -> ServerRow {
    ServerRow {
        state: "failed".to_owned(),
        since: None,
        in_state_ms: None,
        attempts: 0,
        retry_in_ms: None,
        reason: Some(reason.to_owned()),
        start_ms: None,
        last_error: None,
        detail: None,
        ..row
    }
}

/// Returns the reason for which a server is never started.
fn refusal(server: &ServerSpec) -> Option<&String> {
    match &server.transport {
        ServerTransport::Refused { reason } => Some(reason),
        _ => None,
    }
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
        ServerTransport::Refused { .. } => NEVER_STARTED,
    }
}

/// Lists the servers of running gateways; starts none.
async fn list_of_gateways(console: Console) -> Result<Exit, CliError> {
    let answers = gateways::ask(console, OperatorClient::servers).await?;
    let rows = answers.iter().flat_map(|(gateway, records)| {
        records.iter().map(|record: &RawJson| ServerRow {
            gateway: Some(gateway.process()),
            ..record.to().unwrap_or_default()
        })
    });
    show(&rows.collect::<Vec<_>>(), console)
}

fn show(rows: &[ServerRow], console: Console) -> Result<Exit, CliError> {
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
        let has_withheld = rows.iter().any(|row| row.n_withheld > 0);
        if has_withheld {
            header.push("WITHHELD");
        }
        let has_sandbox = rows.iter().any(|row| row.sandbox.is_some());
        if has_sandbox {
            header.push("SANDBOX");
        }
        if has_many {
            header.insert(0, "GATEWAY");
        }
        table.header(header).rows(rows.iter().map(|row| {
            let mut cells = cells(row).to_vec();
            if has_warnings {
                cells.push(warnings(row));
            }
            if has_withheld {
                cells.push(if row.n_withheld > 0 {
                    row.n_withheld.to_string()
                } else {
                    String::new()
                });
            }
            if has_sandbox {
                cells.push(row.sandbox.clone().unwrap_or_default());
            }
            if has_many {
                cells.insert(0, row.gateway.clone().unwrap_or_default());
            }
            cells
        }))
    })?;
    Ok(Exit::Done)
}

fn cells(row: &ServerRow) -> [String; 7] {
    let is_kept = row.lists.as_deref() == Some("kept");
    let kept = is_kept.then_some("its lists are kept from an earlier run");
    let detail = match (row.reason.as_deref(), row.detail.as_deref()) {
        // The last line of stderr; JSON has all of it.
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

/// Returns the last line that contains a letter or digit.
fn last_line(text: &str) -> &str {
    let says = |line: &&str| line.chars().any(char::is_alphanumeric) && !is_npm_notice(line);
    text.lines().rfind(says).unwrap_or_default().trim()
}

/// Returns `true` for a line that npm prints about itself: it is no reason of a failure.
fn is_npm_notice(line: &str) -> bool {
    let line = line.trim_start().to_ascii_lowercase();
    ["npm notice", "npm warn"]
        .iter()
        .any(|notice| line.starts_with(notice))
}

/// Formats the number of warnings and the first of them.
fn warnings(row: &ServerRow) -> String {
    match (row.n_warnings, &row.first_warning) {
        (0, _) => String::new(),
        (n, Some(first)) => format!("{n}: {first}"),
        (n, None) => n.to_string(),
    }
}

/// Formats the time of the next start.
fn next(row: &ServerRow) -> String {
    match (row.retry_in_ms, row.state.as_str()) {
        _ if row.transport.as_deref() == Some(NEVER_STARTED) => String::new(),
        (Some(pause), _) => format!("in {}", text::time(Duration::from_millis(pause))),
        (None, "failed" | "not started") => "when needed".to_owned(),
        _ => String::new(),
    }
}

/// Maximum number of stderr lines of a failed server that are shown.
const MAX_STDERR_LINES: usize = 5;

/// Warns that a server's tools are missing, with the reason and the end of its stderr. Notices of npm are left out: they come after
/// the message of the server.
pub(super) fn warn_of_failure(name: &str, reason: &str, detail: Option<&str>, console: Console) {
    let mut text = format!("the tools of `{name}` are missing: {}", text::line(reason));
    let lines = detail.unwrap_or_default().trim_end().lines();
    let lines: Vec<&str> = lines.filter(|line| !is_npm_notice(line)).collect();
    for line in lines.iter().skip(lines.len().saturating_sub(MAX_STDERR_LINES)) {
        text.push_str("\n  | ");
        text.push_str(&text::line(line));
    }
    console.warn(&text);
}
