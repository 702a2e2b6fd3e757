//! Checks of this machine and of the servers.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
};

use toolplane::{
    Toolplane,
    core::{SourceState, SourceStatus, Template},
    manifest::{Loaded, ServerTransport},
};

use super::Finding;
use crate::{config::variable, output::text};

/// Usual places of the system's CA certificates.
const CERTIFICATES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
];

/// Advice on how to install programs that often start servers.
const PROGRAMS: [(&str, &str); 8] = [
    ("npx", "install Node.js, which brings `npx`"),
    ("node", "install Node.js"),
    ("npm", "install Node.js"),
    ("uvx", "install uv, which brings `uvx`"),
    ("uv", "install uv"),
    ("python", "install Python, or write `python3`"),
    ("python3", "install Python 3"),
    ("docker", "install Docker and start its daemon"),
];

/// Checks for CA certificates for HTTPS.
pub(super) fn certificates() -> Finding {
    const NAME: &str = "certificates";
    let named = ["SSL_CERT_FILE", "SSL_CERT_DIR"]
        .into_iter()
        .find_map(|name| Some((name, variable(name)?)));
    if let Some((name, path)) = named {
        return if Path::new(&path).exists() {
            Finding::ok(NAME, format!("{path} (`{name}`)"))
        } else {
            Finding::fail(
                NAME,
                format!("`{name}` names `{path}`, which does not exist"),
                format!("correct or unset `{name}`"),
            )
        };
    }
    match CERTIFICATES.into_iter().find(|path| Path::new(path).exists()) {
        Some(path) => Finding::ok(NAME, path),
        None => Finding::warn(
            NAME,
            "the system has no certificates of authorities; those that toolplane brings are used",
            "install the package `ca-certificates`",
        ),
    }
}

/// Checks if the gateway can listen at its address.
pub(super) fn port(address: SocketAddr) -> Finding {
    let name = "gateway";
    match TcpListener::bind(address) {
        Ok(_) => Finding::ok(name, format!("{address} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Finding::warn(
            name,
            format!("{address} is in use; perhaps a gateway is running already"),
            "stop it, set `gateway.listen`, or use `serve --http ADDRESS`",
        ),
        Err(error) => Finding::fail(
            name,
            format!("cannot listen at {address}: {error}"),
            "set `gateway.listen` to an address of this machine",
        ),
    }
}

/// Checks for the programs that start servers.
pub(super) async fn programs(loaded: &Loaded) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let secrets = loaded.secrets();
    for (kind, name_of_user, command) in started(loaded) {
        let is_literal = command.literal().is_some();
        // A command with a missing variable is already a finding of the configuration.
        let Ok(command) = command.resolve(&secrets).await else {
            continue;
        };
        // The value of a secret is not shown: only a name that the file contains.
        let shown = if is_literal {
            command.expose()
        } else {
            "its command"
        };
        let name = format!("program {shown}");
        if findings
            .iter()
            .any(|finding| finding.name == name && finding.fix.is_none())
        {
            continue;
        }
        findings.push(match locate(command.expose()) {
            Some(_) if shown != command.expose() => Finding::ok(name, format!("found for `{name_of_user}`")),
            Some(path) => Finding::ok(name, path.display().to_string()),
            None => Finding::fail(
                name,
                format!("not found; the {kind} `{name_of_user}` is started with it"),
                how_to_get(command.expose()),
            ),
        });
    }
    findings
}

/// Returns the servers and endpoints that are programs: the word for each, its name and its program.
fn started(loaded: &Loaded) -> impl Iterator<Item = (&'static str, &str, &Template)> {
    let servers = loaded
        .configuration
        .servers
        .iter()
        .filter(|server| !server.disabled);
    let servers = servers.filter_map(|server| match &server.transport {
        ServerTransport::Stdio { command, .. } => Some(("server", server.name.as_str(), command)),
        ServerTransport::Http { .. } | ServerTransport::Refused { .. } => None,
    });
    // A path of an endpoint with a directory of its own begins there.
    let endpoints = loaded.configuration.endpoints.iter().filter(|endpoint| {
        let is_relative = endpoint
            .command
            .literal()
            .is_some_and(|path| path.starts_with('.'));
        let is_elsewhere = is_relative && endpoint.cwd.is_some();
        !endpoint.disabled && !is_elsewhere
    });
    let endpoints = endpoints.map(|endpoint| ("endpoint", endpoint.name.as_str(), &endpoint.command));
    servers.chain(endpoints)
}

fn how_to_get(program: &str) -> String {
    let known = PROGRAMS.into_iter().find(|(name, _)| *name == program);
    match known {
        Some((_, advice)) => format!("{advice}, and make sure that it is on `PATH`"),
        None => "install it, put it on `PATH`, or write its whole path as `command`".to_owned(),
    }
}

/// Returns the file of a program, searched on `PATH`.
fn locate(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        let path = PathBuf::from(program);
        return is_executable(&path).then_some(path);
    }
    let path = variable("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;

    file.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Reports the state of the servers after listing their tools, and the tools that are not offered.
pub(super) fn servers(loaded: &Loaded, plane: &Toolplane) -> Vec<Finding> {
    let sources = plane.sources();
    let mut findings = Vec::new();
    for server in loaded
        .configuration
        .servers
        .iter()
        .filter(|server| !server.disabled)
    {
        let Some((_, status)) = sources.iter().find(|(name, _)| *name == server.name) else {
            continue;
        };
        findings.push(server_finding(
            "server",
            &server.name,
            &server.origin.place,
            status,
        ));
    }
    let endpoints = loaded.configuration.endpoints.iter();
    for endpoint in endpoints.filter(|endpoint| !endpoint.disabled) {
        let found = sources.iter().find(|(name, _)| *name == endpoint.name);
        findings.extend(
            found.map(|(_, status)| {
                server_finding("endpoint", &endpoint.name, &endpoint.origin.place, status)
            }),
        );
    }
    for (source, warning) in plane.list_warnings() {
        let fix = match warning.kind {
            "look_alike_name" => format!("rename one of them, or exclude it in the settings of `{source}`"),
            "cleaned" => "no action needed; `definitions: withhold` excludes such entries".to_owned(),
            "too_many_entries" | "too_many_bytes" | "too_many_pages" => {
                format!("raise the limit, or set `include` and `exclude` of `{source}`")
            }
            "repeated_cursor" | "cut" => "report it to the authors of the server".to_owned(),
            _ => format!(
                "read it with `toolplane tools show`; exclude it, or set `definitions: clean` or `withhold` for `{source}`"
            ),
        };
        findings.push(Finding::warn(
            format!("server {source}"),
            warning.to_string(),
            fix,
        ));
    }
    for refused in plane.refused() {
        let is_of_server = loaded
            .configuration
            .servers
            .iter()
            .any(|server| server.name == refused.source);
        if is_of_server {
            let message = format!("`{}` is not offered: {}", refused.name, refused.reason);
            let fix = format!("rename or exclude it in the settings of `{}`", refused.source);
            findings.push(Finding::warn(format!("server {}", refused.source), message, fix));
        }
    }
    findings
}

fn server_finding(kind: &str, name: &str, place: &str, status: &SourceStatus) -> Finding {
    let name = format!("{kind} {name}");
    let took = status
        .start_took
        .map(|took| format!(" in {}", text::time(took)))
        .unwrap_or_default();
    match &status.state {
        SourceState::Ready => {
            let what = status.detail.as_deref().unwrap_or("ready");
            Finding::ok(
                name,
                format!("{what}, {}{took}", text::count(status.n_tools, "tool")),
            )
        }
        SourceState::Failed(reason) => Finding {
            detail: status.detail.clone(),
            ..Finding::fail(
                name,
                format!("{reason}{}", took_before_failing(&took)),
                format!("correct its settings at {place}"),
            )
        },
        state => Finding::fail(
            name,
            format!("still {}", state.as_str()),
            format!("look at its settings at {place}"),
        ),
    }
}

fn took_before_failing(took: &str) -> String {
    if took.is_empty() {
        String::new()
    } else {
        format!(" (tried{})", took.replacen(" in ", " for ", 1))
    }
}

/// Reports definitions that are withheld, in one finding for each source.
pub(super) fn withheld(plane: &Toolplane) -> Vec<Finding> {
    let mut sources: Vec<(String, Vec<String>)> = Vec::new();
    for withheld in plane.withheld() {
        let name = format!("`{}`", withheld.name());
        match sources
            .iter_mut()
            .find(|(source, _)| **source == *withheld.key.source)
        {
            Some((_, names)) => names.push(name),
            None => sources.push((withheld.key.source.to_string(), vec![name])),
        }
    }
    let findings = sources.into_iter().map(|(source, names)| {
        let definitions = text::count(names.len(), "definition");
        let message = format!("{definitions} not accepted: {}", names.join(", "));
        let fix = format!("`toolplane tools diff` shows what has changed, `toolplane tools accept --server {source}` accepts it");
        Finding::warn(format!("server {source}"), message, fix)
    });
    findings.collect()
}
