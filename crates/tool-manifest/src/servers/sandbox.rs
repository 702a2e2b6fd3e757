//! Sandboxes of servers, as our files and those of VS Code describe them.

use std::{path::Path, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::Template;
use tool_settings::{ByteSize, Field, NetworkHosts, NodeId, Period, SandboxChoice, WordOrMap};

use crate::{
    clients::Surroundings,
    document::{lists::items, place::Cx},
    servers::transport::{below, parse},
};

/// Sandbox of a server that is a program. It sees the programs in `/usr`, its working directory `cwd` and the paths that are
/// named here, and gets the variables of `env` alone.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ServerSandbox")]
pub(crate) struct SandboxBody {
    /// Level: `auto` for the strongest that works here, by default; `bwrap` or `landlock` for exactly that one; `none` for no
    /// sandbox.
    level: Field<SandboxChoice>,
    /// Paths of this machine that the program may read, under the same paths: for example the installation of its
    /// interpreter. Relative ones begin beside this file.
    reads: Field<Vec<Field<String>>>,
    /// Paths of this machine that the program may read and write. Their size is not limited.
    writes: Field<Vec<Field<String>>>,
    /// Network access: `off` by default, or a list of hosts such as `api.example.com` and `*.example.com:8443`.
    network: Field<NetworkHosts>,
    /// Limits of the program and of all processes that it starts.
    limits: Field<SandboxLimitsBody>,
}

/// Limits of a server in a sandbox. Time limits of calls are `timeout_ms` and `call_timeout` of the server.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ServerSandboxLimits")]
pub(crate) struct SandboxLimitsBody {
    /// Processor time of each process; not limited by default.
    cpu_time: Field<Period>,
    /// Memory; `1GiB` by default, and `8GiB` of address space for each process where memory is not counted for the tree.
    memory: Field<ByteSize>,
    /// Number of processes and threads; 64 by default.
    processes: Field<u32>,
    /// Number of open files of each process; 1024 by default.
    open_files: Field<u32>,
    /// Size of the work directory, and of `/tmp`; `64MiB` by default.
    disk: Field<ByteSize>,
}

/// Rules of VS Code for the servers of a file with `sandboxEnabled: true`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ClientSandbox")]
pub(crate) struct ClientSandboxBody {
    /// Files.
    filesystem: Field<ClientFilesBody>,
    /// Hosts.
    network: Field<ClientNetworkBody>,
}

/// Files of a server in a sandbox, in the words of VS Code.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "ClientSandboxFiles")]
pub(crate) struct ClientFilesBody {
    /// Paths that servers may read and write.
    allow_write: Field<Vec<Field<String>>>,
    /// Paths that servers may not write.
    deny_write: Field<Vec<Field<String>>>,
    /// Paths that servers may not read.
    deny_read: Field<Vec<Field<String>>>,
}

/// Hosts of a server in a sandbox, in the words of VS Code.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "ClientSandboxNetwork")]
pub(crate) struct ClientNetworkBody {
    /// Hosts that servers may reach.
    allowed_domains: Field<Vec<Field<String>>>,
    /// Hosts that servers may not reach.
    denied_domains: Field<Vec<Field<String>>>,
}

/// Sandbox of a server that is a program.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct SandboxSpec {
    /// Level.
    pub level: SandboxChoice,
    /// Absolute paths that the program may read.
    pub reads: Vec<Template>,
    /// Absolute paths that the program may read and write.
    pub writes: Vec<Template>,
    /// Hosts that the program may reach.
    pub network: NetworkHosts,
    /// Processor time of each process; not limited if absent.
    pub cpu_time: Option<Duration>,
    /// Memory, in bytes; the default of the executor if absent.
    pub memory: Option<u64>,
    /// Number of processes and threads; the default of the executor if absent.
    pub processes: Option<u32>,
    /// Number of open files of each process; the default of the executor if absent.
    pub open_files: Option<u32>,
    /// Size of the work directory, in bytes; the default of the executor if absent.
    pub disk: Option<u64>,
}

impl SandboxSpec {
    /// Returns `true` unless the operator wants no sandbox.
    #[must_use]
    pub fn is_enforced(&self) -> bool {
        self.level != SandboxChoice::None
    }
}

/// Reads the sandbox of a server. A part that is wrong is reported.
pub(crate) fn sandbox(
    cx: Cx<'_>,
    field: Field<WordOrMap<SandboxChoice, SandboxBody>>,
    is_program: bool,
) -> Option<SandboxSpec> {
    let (at, written) = field.located()?;
    if !is_program {
        let message = "`sandbox` belongs to a server with a `command`";
        cx.key_error(at, message, "remove it");
        return None;
    }
    let body = match written {
        WordOrMap::Word(level) => {
            return Some(SandboxSpec {
                level,
                ..SandboxSpec::default()
            });
        }
        WordOrMap::Map(body) => body,
    };
    let is_open = body.level.as_ref() == Some(&SandboxChoice::None);
    let reaches = [body.reads.given(), body.writes.given(), body.network.given()];
    for at in reaches.into_iter().flatten().filter(|_| is_open) {
        cx.key_error(
            at,
            "without a sandbox the server reaches everything",
            "remove this line, or `level: none`",
        );
    }
    let limits = body.limits.get().unwrap_or_default();
    Some(SandboxSpec {
        level: body.level.get().unwrap_or_default(),
        reads: paths(cx, body.reads),
        writes: paths(cx, body.writes),
        network: body.network.get().unwrap_or_default(),
        cpu_time: cpu_time(cx, limits.cpu_time),
        memory: bytes(cx, limits.memory),
        processes: number(cx, limits.processes),
        open_files: number(cx, limits.open_files),
        disk: bytes(cx, limits.disk),
    })
}

fn paths(cx: Cx<'_>, field: Field<Vec<Field<String>>>) -> Vec<Template> {
    let paths = items(field).filter_map(Field::located);
    let templates = paths.filter_map(|(at, path)| parse(cx, at, &path_of(cx, &path)));
    templates.collect()
}

/// Returns a path that begins beside the file, or in the home directory for `~/`.
fn path_of(cx: Cx<'_>, path: &str) -> String {
    match path.strip_prefix("~/") {
        Some(rest) => format!("${{env:HOME}}/{rest}"),
        None => below(&cx.document.source.directory, path),
    }
}

fn cpu_time(cx: Cx<'_>, field: Field<Period>) -> Option<Duration> {
    let (at, Period(time)) = field.located()?;
    positive(cx, at, time.is_zero()).then_some(time)
}

fn bytes(cx: Cx<'_>, field: Field<ByteSize>) -> Option<u64> {
    let (at, ByteSize(bytes)) = field.located()?;
    positive(cx, at, bytes == 0).then_some(bytes as u64)
}

fn number(cx: Cx<'_>, field: Field<u32>) -> Option<u32> {
    let (at, number) = field.located()?;
    positive(cx, at, number == 0).then_some(number)
}

fn positive(cx: Cx<'_>, at: NodeId, is_zero: bool) -> bool {
    if is_zero {
        let hint = "leave it out for the default";
        cx.error(at, "nothing can run within a limit of 0", hint);
    }
    !is_zero
}

/// Rules of VS Code for programs with `sandboxEnabled`. They deny what they do not allow, except for reading, where VS Code denies
/// what is named. Here a program reads only `/usr`, its working directory and what it may write, so everything that is denied is,
/// unless it overlaps with one of these.
#[derive(Debug, Default)]
pub(crate) struct ClientSandbox {
    /// Paths that programs may read and write.
    pub(crate) writes: Vec<ClientPath>,
    /// Paths that programs may not write.
    pub(crate) unwritable: Vec<ClientPath>,
    /// Paths that programs may not read.
    pub(crate) unreadable: Vec<ClientPath>,
    /// Hosts that programs may reach.
    pub(crate) hosts: Vec<(NodeId, String)>,
    /// Hosts that programs may not reach.
    pub(crate) denied_hosts: Vec<(NodeId, String)>,
}

/// A path in the rules of VS Code.
#[derive(Debug)]
pub(crate) struct ClientPath {
    pub(crate) at: NodeId,
    /// The path as it is written.
    pub(crate) written: String,
    /// The absolute path, as the text of a template.
    pub(crate) path: String,
}

/// Directories that a program can read in every sandbox.
const READABLE: [&str; 4] = ["/usr", "/bin", "/lib", "/lib64"];

impl ClientSandbox {
    /// Reads the rules of a file of ours.
    pub(crate) fn new(cx: Cx<'_>, body: ClientSandboxBody) -> Self {
        let files = body.filesystem.get().unwrap_or_default();
        let network = body.network.get().unwrap_or_default();
        let surroundings = Surroundings::of_process();
        let texts = |field| -> Vec<(NodeId, String)> { items(field).filter_map(Field::located).collect() };
        let paths = |field| {
            let paths = texts(field).into_iter().map(|(at, written)| ClientPath {
                at,
                path: surroundings.absolute_text(&path_of(cx, &written)),
                written,
            });
            paths.collect()
        };
        Self {
            writes: paths(files.allow_write),
            unwritable: paths(files.deny_write),
            unreadable: paths(files.deny_read),
            hosts: texts(network.allowed_domains),
            denied_hosts: texts(network.denied_domains),
        }
    }

    /// Returns what the sandbox cannot enforce for a program with this working directory, each with its place.
    pub(crate) fn unenforced(&self, cwd: Option<&str>) -> Vec<(NodeId, String)> {
        let mut problems = Vec::new();
        for denied in self.unwritable.iter().chain(&self.unreadable) {
            let mut writes = self.writes.iter();
            if let Some(allowed) = writes.find(|allowed| overlap(&denied.path, &allowed.path)) {
                let relation = match () {
                    () if is_within(&denied.path, &allowed.path) => "within",
                    () if is_within(&allowed.path, &denied.path) => "around",
                    () => "beside",
                };
                let message = format!(
                    "the sandbox cannot deny `{}` {relation} the allowed `{}`",
                    denied.written, allowed.written
                );
                problems.push((denied.at, message));
            }
        }
        for denied in &self.unreadable {
            let mut readable = cwd.into_iter().chain(READABLE);
            if let Some(path) = readable.find(|path| overlap(&denied.path, path)) {
                let message = format!(
                    "the sandbox cannot deny `{}`: the program can read `{path}`",
                    denied.written
                );
                problems.push((denied.at, message));
            }
        }
        for (at, host) in &self.hosts {
            if !NetworkHosts::is_host(host) {
                problems.push((*at, format!("the sandbox cannot allow the host `{host}`")));
            }
        }
        for (at, denied) in &self.denied_hosts {
            let mut hosts = self.hosts.iter();
            if let Some((_, allowed)) = hosts.find(|(_, allowed)| overlaps(allowed, denied)) {
                let message = format!("the sandbox cannot deny `{denied}` beside the allowed `{allowed}`");
                problems.push((*at, message));
            }
        }
        problems
    }

    /// Returns the sandbox of a program in a file of ours.
    pub(crate) fn spec(&self, cx: Cx<'_>) -> SandboxSpec {
        let mut spec = SandboxSpec::default();
        for path in &self.writes {
            spec.writes
                .extend(parse(cx, path.at, &path_of(cx, &path.written)));
        }
        if !self.hosts.is_empty() {
            spec.network = NetworkHosts::Hosts(self.hosts.iter().map(|(_, host)| host.clone()).collect());
        }
        spec
    }
}

/// Returns `true` if two paths have something in common, also through symbolic links, or may have because one contains a pattern or a
/// reference.
fn overlap(one: &str, other: &str) -> bool {
    overlap_as_written(one, other) || overlap_as_written(&real(one), &real(other))
}

/// Resolves the symbolic links in the part of a path that exists.
fn real(path: &str) -> String {
    // A template has two dollar signs for one.
    let literal = path.replace("$$", "$");
    let path = Path::new(&literal);
    for parent in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (parent.canonicalize(), path.strip_prefix(parent)) {
            return real.join(rest).to_string_lossy().replace('$', "$$");
        }
    }
    literal.replace('$', "$$")
}

fn overlap_as_written(one: &str, other: &str) -> bool {
    let fixed = |path: &str| path.split(['*', '?', '[', '{']).next().map_or(0, str::len);
    match (&one[..fixed(one)], &other[..fixed(other)]) {
        (first, second) if first.len() == one.len() && second.len() == other.len() => {
            is_within(one, other) || is_within(other, one)
        }
        (first, second) => {
            let (first, second) = (first.trim_end_matches('$'), second.trim_end_matches('$'));
            first.starts_with(second) || second.starts_with(first)
        }
    }
}

/// Returns `true` if a path is a directory or below it.
fn is_within(path: &str, directory: &str) -> bool {
    let rest = path.strip_prefix(directory.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns `true` if an allowed host and a denied one have a host in common, or may have.
fn overlaps(allowed: &str, denied: &str) -> bool {
    let domain = |text: &str| text.trim_start_matches("*.").to_ascii_lowercase();
    let (one, other) = (domain(allowed), domain(denied));
    let is_below = |name: &str, of: &str| name.strip_suffix(of).is_some_and(|rest| rest.ends_with('.'));
    one == other
        || denied == "*"
        || allowed.starts_with("*.") && is_below(&other, &one)
        || denied.starts_with("*.") && is_below(&one, &other)
}
