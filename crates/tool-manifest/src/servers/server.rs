use std::{collections::BTreeMap, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{DefinitionPolicy, Overrides, PinMode};
use tool_settings::{
    Entries, Field, NodeId, Period, Raw, SandboxChoice, SectionEntries, SectionLevel, Text, WordOrMap,
};

use crate::{
    EraSpec, IsolationSpec, ServerSpec, StartMode,
    config::call_timeout,
    document::{lists::patterns, place::Cx, suggest},
    servers::{
        list_limits::{self, DefinitionsWord, ListLimitsBody, PinWord},
        sandbox::{self, SandboxBody},
        server_health,
        transport::{Written, transport},
    },
};

/// An MCP server: a `command` that is started, or a `url` that is asked.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Server")]
pub(crate) struct ServerBody {
    /// The program to start. `${…}` references are resolved when it is started.
    pub(crate) command: Field<String>,
    /// Its arguments.
    pub(crate) args: Field<Vec<Field<Text>>>,
    /// Variables for its environment, such as `TOKEN: ${env:TOKEN}`. Other variables are not handed down, except for
    /// those that a process needs to start and those of `inherit_env`.
    pub(crate) env: Field<Entries<Text>>,
    /// File with more variables, one `NAME=value` a line, relative to this file; it is read whenever the program is started. A
    /// variable in `env` replaces that of the file.
    pub(crate) env_file: Field<String>,
    /// Names of environment variables that are handed down to it where they are set, instead of those in `defaults`;
    /// none with `[]`.
    pub(crate) inherit_env: Field<Vec<Field<String>>>,
    /// The directory to start it in, relative to this file.
    pub(crate) cwd: Field<String>,
    /// Sandbox of the program: `auto` for the strongest level that works here, or what it may reach. Without this, it is started
    /// as any other program.
    pub(crate) sandbox: Field<WordOrMap<SandboxChoice, SandboxBody>>,
    /// VS Code's word for a sandbox with the rules of `sandbox` in the same file.
    #[serde(rename = "sandboxEnabled")]
    pub(crate) sandbox_enabled: Field<bool>,
    /// The URL of an endpoint: Streamable HTTP, or HTTP+SSE where that is refused; with `ws://` or `wss://` WebSocket.
    #[serde(alias = "serverUrl", alias = "httpUrl")]
    pub(crate) url: Field<String>,
    /// Headers of every request, such as `Authorization: Bearer ${env:TOKEN}`.
    pub(crate) headers: Field<Entries<Text>>,
    /// Transport to the server: `stdio`, `http` for Streamable HTTP only, `sse` for HTTP+SSE only, or `websocket`. It
    /// is known from `command` or `url` and need not be given.
    #[serde(rename = "type", alias = "transport")]
    pub(crate) transport: Field<String>,
    /// Time limit of one attempt, in milliseconds.
    pub(crate) timeout_ms: Field<u64>,
    /// Time limit of a whole call of its tools, queueing and retries included, instead of the one in `defaults`.
    pub(crate) call_timeout: Field<Period>,
    /// Time limit of the server's start, in milliseconds.
    pub(crate) start_timeout_ms: Field<u64>,
    #[serde(rename = "$server")]
    pub(crate) sections: SectionEntries,
    /// The only tools and prompts to offer, by the server's own names, and resources, by their URIs; `*` stands for any
    /// characters. With `[read_*]` no resource is offered.
    #[serde(alias = "includeTools")]
    pub(crate) include: Field<Vec<Field<String>>>,
    /// Tools and prompts not to offer, by the server's own names, and resources, by their URIs; `*` stands for any
    /// characters.
    #[serde(alias = "excludeTools", alias = "disabledTools")]
    pub(crate) exclude: Field<Vec<Field<String>>>,
    /// Other names for tools: the server's own name, then the new one.
    pub(crate) rename: Field<Entries<String>>,
    /// Prefix of the names of tools and prompts; the server's name and `__` by default. An empty text means no
    /// prefix. URIs of resources stay as they are.
    pub(crate) prefix: Field<String>,
    /// Instructions for models that clients get instead of the server's own; its own by default, and none if empty
    /// (`instructions: ""`).
    pub(crate) instructions: Field<String>,
    /// Takes the server out of use.
    pub(crate) disabled: Field<bool>,
    /// Revisions of the protocol that are tried.
    pub(crate) era: Field<EraSpec>,
    /// Calls that share a connection.
    pub(crate) isolation: Field<IsolationSpec>,
    /// Maximum number of connections for single clients, in addition to the shared one; 16 by default. Beyond that,
    /// calls share under `isolation: auto`. Otherwise a client that has a connection waits for it, and one that has
    /// none is refused.
    pub(crate) max_connections: Field<u32>,
    /// Interval at which its lists are read again if it announces no changes, instead of the one in `defaults`. The
    /// lifetime that the server itself declares (`ttlMs`, above 0) goes first.
    pub(crate) refresh_interval: Field<Period>,
    /// Time at which it is started, instead of the one in `defaults`. A `required` server is started with the
    /// gateway.
    pub(crate) start: Field<StartMode>,
    /// Time for which it may be unused before it is stopped, such as `15m`, instead of the one in `defaults`; it is
    /// started again when it is needed. Only a program that is started lazily is stopped. With `0s` it is not.
    pub(crate) idle_timeout: Field<Period>,
    /// Keeps its lists on disk, without known secrets, and offers them before it runs, instead of the setting in
    /// `defaults`.
    pub(crate) keep_lists: Field<bool>,
    /// Interval of its health check while the gateway runs, such as `30s`; `health.server_interval` by default, and
    /// never with `0s`. The check starts a failed server again.
    pub(crate) health_check_interval: Field<Period>,
    /// Checks its health at each start as well: a server that is not healthy has failed to start.
    pub(crate) health_check_at_start: Field<bool>,
    /// Tool that checks its health, by the server's own name: if the tool fails or reports a failure, the server is
    /// not healthy. Without it only the presence of the server is checked.
    pub(crate) health_check_tool: Field<String>,
    /// Arguments of that tool.
    pub(crate) health_check_arguments: Raw,
    /// Reports the gateway as ready only when this server is, and starts the server whenever it is not running.
    pub(crate) required: Field<bool>,
    #[serde(rename = "$server-late")]
    pub(crate) late_sections: SectionEntries,
    /// Handling of its suspicious definitions, instead of `policy.definitions`.
    pub(crate) definitions: Field<DefinitionsWord>,
    /// Pins of its definitions, instead of `policy.pin`.
    pub(crate) pin: Field<PinWord>,
    /// Limits of its lists, instead of those in `defaults`.
    pub(crate) list_limits: Field<ListLimitsBody>,
}

/// Reads a server. Returns `None` if it is not usable, which is then reported.
pub(crate) fn server(cx: Cx<'_>, name: &str, at: NodeId, body: ServerBody) -> Option<ServerSpec> {
    check_name(cx, name, at, "server");
    let include = body.include.given().is_some().then(|| patterns(body.include));
    let timeout_at = body.timeout_ms.given();
    let timeout = milliseconds(cx, body.timeout_ms);
    let start_timeout = milliseconds(cx, body.start_timeout_ms);
    let max_connections = max_connections(cx, body.max_connections);
    let health = server_health::read(
        cx,
        server_health::Written {
            interval: body.health_check_interval,
            at_start: body.health_check_at_start,
            tool: body.health_check_tool,
            arguments: body.health_check_arguments,
        },
    );
    let prefix = prefix(cx, body.prefix);
    check_era(cx, &body.era, &body.transport);
    let written = Written {
        command: body.command,
        args: body.args,
        env: body.env,
        inherit_env: body.inherit_env,
        cwd: body.cwd,
        env_file: body.env_file,
        url: body.url,
        headers: body.headers,
        kind: body.transport,
    };
    let mut overrides = Overrides::default();
    overrides.call_timeout = call_timeout::call_timeout(cx, body.call_timeout);
    let entries = [&body.sections, &body.late_sections];
    cx.sections
        .read(SectionLevel::Server, &cx, &entries, &mut overrides);
    call_timeout::outlasted(cx, timeout_at, timeout, overrides.call_timeout);
    let is_remote = written.url.given().is_some();
    let (start, required) = (body.start.get(), body.required.get().unwrap_or_default());
    let sandbox = sandbox::sandbox(cx, body.sandbox, !is_remote);
    let idle_timeout = idle_timeout(cx, body.idle_timeout, is_remote, start, required);
    Some(ServerSpec {
        name: name.to_owned(),
        origin: cx.place(at).origin(),
        transport: transport(cx, at, written)?,
        timeout,
        start_timeout,
        overrides,
        include,
        exclude: patterns(body.exclude),
        rename: rename(cx, body.rename),
        prefix,
        disabled: body.disabled.get().unwrap_or_default(),
        era: body.era.get().unwrap_or_default(),
        isolation: body.isolation.get().unwrap_or_default(),
        max_connections,
        health,
        required,
        refresh_interval: refresh_interval(cx, body.refresh_interval),
        start,
        idle_timeout,
        keep_lists: body.keep_lists.get(),
        definitions: body.definitions.get().map(DefinitionPolicy::from),
        pin: body.pin.get().map(PinMode::from),
        list_limits: list_limits::list_limits(cx, body.list_limits),
        instructions: body.instructions.get(),
        sandbox,
    })
}

/// Refuses the transport of 2024-11-05 in the modern era.
fn check_era(cx: Cx<'_>, era: &Field<EraSpec>, transport: &Field<String>) {
    if let (Some(at), Some(EraSpec::Modern), Some("sse")) =
        (era.given(), era.as_ref(), transport.as_ref().map(String::as_str))
    {
        cx.error(
            at,
            "no server speaks this era over `sse`",
            "remove one of the two lines",
        );
    }
}

/// Reads a time in milliseconds, which cannot be zero.
pub(crate) fn milliseconds(cx: Cx<'_>, field: Field<u64>) -> Option<Duration> {
    let (at, value) = field.located()?;
    if value == 0 {
        cx.error(
            at,
            "a time limit must be longer than 0",
            "leave it out for the default",
        );
        return None;
    }
    Some(Duration::from_millis(value))
}

/// Reads the time for which a server may be unused, which is only for programs that are started lazily.
fn idle_timeout(
    cx: Cx<'_>,
    field: Field<Period>,
    is_remote: bool,
    start: Option<StartMode>,
    required: bool,
) -> Option<Duration> {
    let (at, Period(period)) = field.located()?;
    let problem = match (is_remote, start, required) {
        _ if period.is_zero() => None,
        (true, ..) => Some("a server that is reached by its `url` is not stopped"),
        (_, Some(StartMode::Eager), _) => Some("an eager server is not stopped"),
        (.., true) => Some("a required server is not stopped"),
        _ => None,
    };
    if let Some(problem) = problem {
        cx.error(at, problem, "remove one of the two lines");
    }
    Some(period)
}

/// Reads the interval at which lists are read again.
pub(crate) fn refresh_interval(cx: Cx<'_>, field: Field<Period>) -> Option<Duration> {
    let (at, Period(period)) = field.located()?;
    if period < Duration::from_secs(10) {
        cx.error(at, "lists are read again every 10 s at most", "write `5m`");
        return None;
    }
    Some(period)
}

fn max_connections(cx: Cx<'_>, field: Field<u32>) -> Option<usize> {
    let (at, most) = field.located()?;
    if most == 0 {
        let hint = "write `isolation: shared` if all calls are to share one";
        cx.error(at, "a server needs at least 1 connection", hint);
        return None;
    }
    usize::try_from(most).ok()
}

/// Checks the name of a source: a `server` or an `endpoint`.
pub(crate) fn check_name(cx: Cx<'_>, name: &str, at: NodeId, what: &str) {
    let fits = !name.is_empty()
        && name.len() <= 64
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-. ".contains(&byte));
    if !fits {
        cx.key_error(
            at,
            format!("`{}` is no {what} name", suggest::shown(name)),
            "use 1 to 64 letters, digits, `_`, `-`, `.` and spaces",
        );
    }
}

fn rename(cx: Cx<'_>, field: Field<Entries<String>>) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for (name, field) in field.get().unwrap_or_default() {
        let Some((at, new)) = field.located() else {
            continue;
        };
        if let Err(problem) = tool_core::check_name(&new) {
            cx.error(at, problem.to_string(), "");
        }
        names.insert(name, new);
    }
    names
}

/// Reads the prefix of the names of tools.
pub(crate) fn prefix(cx: Cx<'_>, field: Field<String>) -> Option<String> {
    let (at, prefix) = field.located()?;
    if !prefix.is_empty()
        && let Err(problem) = tool_core::check_name(&prefix)
    {
        cx.error(at, format!("this cannot begin a tool's name: {problem}"), "");
    }
    Some(prefix)
}
