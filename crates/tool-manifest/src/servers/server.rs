use std::{collections::BTreeMap, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{DefinitionPolicy, Overrides, Pattern};
use tool_settings::{Entries, Field, NodeId, Period, Raw, SectionEntries, SectionLevel, Text};

use crate::{
    EraSpec, IsolationSpec, ServerSpec, StartMode,
    config::call_timeout,
    document::{place::Cx, suggest},
    servers::{
        list_limits::{self, DefinitionsWord, ListLimitsBody},
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
    /// Variables for its environment, such as `TOKEN: ${env:TOKEN}`. No other variable is handed down but what a
    /// process needs to start and those of `inherit_env`.
    pub(crate) env: Field<Entries<Text>>,
    /// Names of environment variables that are handed down to it where they are set, in the place of what `defaults` say.
    /// With `[]` none is.
    pub(crate) inherit_env: Field<Vec<Field<String>>>,
    /// The directory to start it in, relative to this file.
    pub(crate) cwd: Field<String>,
    /// The URL of an endpoint: Streamable HTTP, or HTTP+SSE where that is refused; with `ws://` or `wss://` WebSocket.
    #[serde(alias = "serverUrl", alias = "httpUrl")]
    pub(crate) url: Field<String>,
    /// Headers of every request, such as `Authorization: Bearer ${env:TOKEN}`.
    pub(crate) headers: Field<Entries<Text>>,
    /// How the server is reached: `stdio`, `http` for Streamable HTTP only, `sse` for HTTP+SSE only, or `websocket`. It is
    /// known from `command` or `url` and need not be said.
    #[serde(rename = "type", alias = "transport")]
    pub(crate) transport: Field<String>,
    /// How long one call may take, in milliseconds.
    pub(crate) timeout_ms: Field<u64>,
    /// How long a call of its tools may take in all, queueing and retries included, in the place of what `defaults` say.
    pub(crate) call_timeout: Field<Period>,
    /// How long the server may take to start, in milliseconds.
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
    /// What goes before the names of tools and prompts; the server's name and `__` if it is not given. An empty text
    /// means nothing. URIs of resources stay as they are.
    pub(crate) prefix: Field<String>,
    /// Instructions for models that clients get in place of the server's own; its own if it is not given, and none if it
    /// is empty (`instructions: ""`).
    pub(crate) instructions: Field<String>,
    /// Whether the server is left alone.
    pub(crate) disabled: Field<bool>,
    /// Which revisions of the protocol are tried.
    pub(crate) era: Field<EraSpec>,
    /// Which calls share a connection.
    pub(crate) isolation: Field<IsolationSpec>,
    /// How many connections there may be at once for single clients, beside the one that is shared. 16 if it is not
    /// given. Beyond that, calls share under `isolation: auto`. Otherwise a client that has a connection waits for it, and
    /// one that has none is refused.
    pub(crate) max_connections: Field<u32>,
    /// How often those of its lists are read again of whose changes it does not tell, in the place of what `defaults` say.
    /// What it says itself of how long they stay as they are (`ttlMs`, above 0) goes before.
    pub(crate) refresh_interval: Field<Period>,
    /// When it is started, instead of what `defaults` say. A `required` server is started with the gateway.
    pub(crate) start: Field<StartMode>,
    /// How long nobody may have used it before it is stopped, such as `15m`, instead of what `defaults` say; it is started again
    /// when it is needed. Only a program that is started lazily is stopped. With `0s` it is not.
    pub(crate) idle_timeout: Field<Period>,
    /// Whether its lists are kept on disk, without known secrets, and offered before it runs, instead of what `defaults` say.
    pub(crate) keep_lists: Field<bool>,
    /// How often it is asked, while the gateway runs, whether it is well, such as `30s`; as `health.server_interval` says if
    /// it is not given, and never with `0s`. A server that has failed is started again by it.
    pub(crate) health_check_interval: Field<Period>,
    /// Whether it is asked the same whenever it was started: one that is not well has failed to start.
    pub(crate) health_check_at_start: Field<bool>,
    /// The tool that is called to find out, by the server's own name: one that fails or reports a failure says that the
    /// server is not well. Without it the server is asked only whether it is there.
    pub(crate) health_check_tool: Field<String>,
    /// What that tool is called with.
    pub(crate) health_check_arguments: Raw,
    /// Whether the gateway says that it is ready only when this server is, and starts it whenever it is not there.
    pub(crate) required: Field<bool>,
    #[serde(rename = "$server-late")]
    pub(crate) late_sections: SectionEntries,
    /// How its suspicious definitions are handled, in the place of what `policy.definitions` says.
    pub(crate) definitions: Field<DefinitionsWord>,
    /// Limits of its lists, in the place of those in `defaults`.
    pub(crate) list_limits: Field<ListLimitsBody>,
}

/// Reads a server. Returns `None` if it is not usable, which is then reported.
pub(crate) fn server(cx: Cx<'_>, name: &str, at: NodeId, body: ServerBody) -> Option<ServerSpec> {
    check_name(cx, name, at);
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
        list_limits: list_limits::list_limits(cx, body.list_limits),
        instructions: body.instructions.get(),
    })
}

pub(crate) fn items<T>(field: Field<Vec<Field<T>>>) -> impl Iterator<Item = Field<T>> {
    field.get().unwrap_or_default().into_iter()
}

/// Returns the usable items of a list as patterns.
pub(crate) fn patterns(field: Field<Vec<Field<String>>>) -> Vec<Pattern> {
    items(field).filter_map(Field::get).map(Pattern::new).collect()
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

fn check_name(cx: Cx<'_>, name: &str, at: NodeId) {
    let fits = !name.is_empty()
        && name.len() <= 64
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-. ".contains(&byte));
    if !fits {
        cx.key_error(
            at,
            format!("`{}` is no server name", suggest::shown(name)),
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

fn prefix(cx: Cx<'_>, field: Field<String>) -> Option<String> {
    let (at, prefix) = field.located()?;
    if !prefix.is_empty()
        && let Err(problem) = tool_core::check_name(&prefix)
    {
        cx.error(at, format!("this cannot begin a tool's name: {problem}"), "");
    }
    Some(prefix)
}
