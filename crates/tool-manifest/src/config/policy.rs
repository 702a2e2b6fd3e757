use std::{collections::BTreeMap, num::NonZeroUsize};

use schemars::JsonSchema;
use serde::Deserialize;

use tool_settings::{ByteSize, Entries, Field, Period, SectionEntries, SectionLevel};

use crate::{
    ApprovalSpec, CallLimitsSpec, Defaults, GatewaySpec, PolicySpec, ToolChoiceSpec, WebhookSpec,
    config::health::{self, WebhookBody},
    config::listen::Listen,
    config::origins,
    document::place::{Cx, Place},
    servers::environment,
    servers::list_limits::{self, DefinitionsWord, ListLimitsBody},
    servers::server::{StartMode, patterns, refresh_interval},
    tools::metadata::texts,
};

/// Limits for whatever sets none of its own.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Defaults")]
pub(crate) struct DefaultsBody {
    /// How long a call may take in all, queueing and retries included; 60s if it is not given. That of a server or
    /// tool is in its place.
    call_timeout: Field<Period>,
    /// How long one attempt may take; 30s if it is not given. A tool's `timeout_ms` wins.
    attempt_timeout: Field<Period>,
    /// How long a connection may take; 5s if it is not given.
    connect_timeout: Field<Period>,
    /// How long a server may take to start; 20s if it is not given.
    start_timeout: Field<Period>,
    /// Names of environment variables that are handed down to servers with a `command` where they are set: those of
    /// certificate authorities and proxies if it is not given, none with `[]`. That of a server is in its place.
    inherit_env: Field<Vec<Field<String>>>,
    /// How often lists of servers are read again that tell of no changes; 5m if it is not given. That of a server is in its
    /// place.
    refresh_interval: Field<Period>,
    /// When servers are started; `lazy` if it is not given. That of a server is in its place.
    start: Field<StartMode>,
    /// How long nobody may have used a program that is started lazily before it is stopped, such as `15m`; it is started again
    /// when it is needed. It is not stopped if it is not given, since servers may hold what was done before. That of a server is
    /// in its place.
    idle_timeout: Field<Period>,
    /// How many servers are started at the same time; 8 if it is not given. Those that a call waits for go first, and of two
    /// and more one start is kept for them.
    max_concurrent_starts: Field<u32>,
    /// Whether the lists of servers are kept on disk, without known secrets, and offered before the servers run; they are if it
    /// is not given. That of a server is in its place.
    keep_lists: Field<bool>,
    /// How large a result may be; 16MiB if it is not given.
    max_result_bytes: Field<ByteSize>,
    #[serde(rename = "$defaults")]
    sections: SectionEntries,
    #[serde(rename = "$defaults-late")]
    late_sections: SectionEntries,
    /// Limits of the lists of servers. Those of a server are in their place, one by one.
    list_limits: Field<ListLimitsBody>,
}

/// How tools are served over HTTP.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Gateway")]
pub(crate) struct GatewayBody {
    /// The address to listen on; `127.0.0.1:7080` if it is not given.
    listen: Field<Listen>,
    /// Hosts that requests may be addressed to, besides the address itself, such as `tools.example.com`.
    allowed_hosts: Field<Vec<Field<String>>>,
    /// Origins of web pages that may use the gateway and read its answers (CORS), such as
    /// `https://inspector.example.com` or `http://localhost:6274`; only pages of the gateway's own origin if it is not given.
    allowed_origins: Field<Vec<Field<String>>>,
    /// Instructions for models on how to use the tools: clients get them before those of the servers.
    instructions: Field<String>,
    /// The path at which old clients are served that speak HTTP+SSE, the transport of 2024-11-05, such as `/sse`; they
    /// are not served if it is not given.
    sse_path: Field<String>,
    /// Whether metrics for Prometheus are served at `/metrics` of the same address; they are not if it is not given.
    metrics: Field<bool>,
    /// An address of this machine at which metrics are served by themselves, also with `--stdio`, such as
    /// `127.0.0.1:9464`.
    metrics_listen: Field<Listen>,
    /// How long a list waits for a server of which no list is known, counted from its first start; 4s if it is not given. What
    /// is missing then is named in `_meta`, and clients are told when it is there. With `0s` no list waits.
    list_wait: Field<Period>,
}

/// Who may call what.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Policy")]
pub(crate) struct PolicyBody {
    /// Tools that nobody may call, by the names that agents see or that servers have them under; `*` stands for any characters.
    pub(crate) blocklist: Field<Vec<Field<String>>>,
    /// The only tools that may be called, by the names that agents see; `*` stands for any characters.
    pub(crate) allowlist: Field<Vec<Field<String>>>,
    /// What each principal is permitted: `local: [network.external]`.
    pub(crate) permissions: Field<Entries<Vec<Field<String>>>>,
    /// What tools require beside what they ask for themselves, by the names that agents see; `*` stands for any
    /// characters: `files__delete_*: [files.write]`. Who lacks one of these neither sees nor calls them.
    pub(crate) required_permissions: Field<Entries<Vec<Field<String>>>>,
    /// Which calls somebody must approve, beside those of tools and servers whose own `approval` says so, and how.
    pub(crate) approval: Field<ApprovalBody>,
    /// Whether a model may, must or must not call tools; it may if it is not given.
    pub(crate) tool_choice: Field<ToolChoiceSpec>,
    /// How much may be called in a turn and in a conversation, which callers name in `_meta` by `dev.toolplane/turn` and
    /// `dev.toolplane/conversation`.
    pub(crate) limits: Field<CallLimitsBody>,
    #[serde(rename = "$policy")]
    pub(crate) sections: SectionEntries,
    #[serde(rename = "$policy-late")]
    pub(crate) late_sections: SectionEntries,
    /// How suspicious definitions of servers are handled; `pass` if it is not given. That of a server is in its place.
    pub(crate) definitions: Field<DefinitionsWord>,
}

/// How much may be called in a turn and in a conversation; any amount of what is not given.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "CallLimits")]
pub(crate) struct CallLimitsBody {
    /// Calls in one turn, which is one answer of a model. Calls that name no turn are in none.
    calls_per_turn: Field<u32>,
    /// Calls in one conversation. Those that name none are of their session's, or else of their principal's.
    calls_per_conversation: Field<u32>,
    /// Calls of the same tool with the same arguments in one conversation.
    identical_calls: Field<u32>,
    /// What the calls of one turn may cost by the tools' `cost_per_call`, in US dollars.
    cost_per_turn: Field<f64>,
    /// What the calls of one conversation may cost by the tools' `cost_per_call`, in US dollars.
    cost_per_conversation: Field<f64>,
}

/// Which calls somebody must approve, and how.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Approval")]
pub(crate) struct ApprovalBody {
    /// What nobody calls without approval, by the names that agents see; `*` stands for any characters. What a tool or
    /// server says of itself changes nothing about it.
    required: Field<Vec<Field<String>>>,
    /// Whether somebody else than the caller must decide: then the client of the call is not asked.
    separate_approver: Field<bool>,
    /// How long an approval can be given and used; 10m if it is not given.
    expires_after: Field<Period>,
    /// Who is told of every approval that is asked for or decided.
    callback: Field<WebhookBody>,
}

pub(crate) fn defaults(cx: Cx<'_>, body: DefaultsBody) -> Defaults {
    let mut defaults = Defaults::default();
    for (field, limit) in [
        (body.call_timeout, &mut defaults.call_timeout),
        (body.attempt_timeout, &mut defaults.attempt_timeout),
        (body.connect_timeout, &mut defaults.connect_timeout),
        (body.start_timeout, &mut defaults.start_timeout),
    ] {
        let Some((at, Period(period))) = field.located() else {
            continue;
        };
        if period.is_zero() {
            cx.error(
                at,
                "a time limit must be longer than 0",
                "leave it out for the default",
            );
        }
        *limit = period;
    }
    if let Some(interval) = refresh_interval(cx, body.refresh_interval) {
        defaults.refresh_interval = interval;
    }
    defaults.start = body.start.get().unwrap_or(defaults.start);
    defaults.idle_timeout = body.idle_timeout.get().map(|Period(period)| period);
    if let Some((at, most)) = body.max_concurrent_starts.located() {
        match usize::try_from(most).ok().and_then(NonZeroUsize::new) {
            Some(most) => defaults.max_concurrent_starts = most,
            None => cx.error(
                at,
                "no server could ever be started",
                "leave it out for the usual 8",
            ),
        }
    }
    defaults.keep_lists = body.keep_lists.get().unwrap_or(defaults.keep_lists);
    defaults.inherit_env = environment::inherited(cx, body.inherit_env);
    if let Some((at, ByteSize(bytes))) = body.max_result_bytes.located() {
        if bytes == 0 {
            cx.error(at, "no result fits into 0 bytes", "leave it out for the default");
        }
        defaults.max_result_bytes = bytes;
    }
    let entries = [&body.sections, &body.late_sections];
    cx.sections
        .read(SectionLevel::Defaults, &cx, &entries, &mut defaults.overrides);
    defaults.list_limits = list_limits::list_limits(cx, body.list_limits).or(defaults.list_limits);
    defaults
}

pub(crate) fn gateway(cx: Cx<'_>, body: GatewayBody) -> GatewaySpec {
    let mut gateway = GatewaySpec {
        allowed_hosts: texts(body.allowed_hosts),
        allowed_origins: origins::read(cx, body.allowed_origins),
        ..GatewaySpec::default()
    };
    if let Some(Listen(listen)) = body.listen.get() {
        gateway.listen = listen;
    }
    if let Some(Period(wait)) = body.list_wait.get() {
        gateway.list_wait = wait;
    }
    gateway.instructions = body.instructions.get();
    gateway.metrics = body.metrics.get().unwrap_or_default();
    gateway.metrics_listen = body.metrics_listen.get().map(|Listen(listen)| listen);
    if let Some((at, path)) = body.sse_path.located() {
        if !path.starts_with('/') || path.contains(['?', '#']) {
            cx.error(at, format!("`{path}` is no path"), "write one such as `/sse`");
        } else if TAKEN.contains(&path.as_str()) {
            cx.error(
                at,
                format!("something else is served at `{path}`"),
                "take another path, such as `/sse`",
            );
        }
        gateway.sse_path = Some(path);
    }
    gateway
}

/// The paths at which the gateway serves other things.
const TAKEN: [&str; 5] = ["/mcp", "/health", "/healthz", "/readyz", "/metrics"];

/// Adds what a file says of turns and conversations. Of what several files say, the strictest counts.
pub(crate) fn choice_and_limits(
    cx: Cx<'_>,
    choice: Field<ToolChoiceSpec>,
    limits: Field<CallLimitsBody>,
    policy: &mut PolicySpec,
) {
    let body = limits.get().unwrap_or_default();
    let calls = |field: Field<u32>| {
        let (at, calls) = field.located()?;
        if calls == 0 {
            cx.error(
                at,
                "no call could ever be made",
                "write `tool_choice: none` for that",
            );
        }
        Some(calls)
    };
    let cost = |field: Field<f64>| {
        let (at, cost) = field.located()?;
        if !cost.is_finite() || cost < 0.0 {
            let hint = "write it in US dollars, such as `0.50`";
            cx.error(at, "this is no amount of money", hint);
        }
        Some(cost)
    };
    let limits = CallLimitsSpec {
        calls_per_turn: calls(body.calls_per_turn),
        calls_per_conversation: calls(body.calls_per_conversation),
        identical_calls: calls(body.identical_calls),
        cost_per_turn: cost(body.cost_per_turn),
        cost_per_conversation: cost(body.cost_per_conversation),
    };
    merge_choice_and_limits(policy, choice.get().unwrap_or_default(), limits);
}

/// Both together: the strictest counts.
pub(crate) fn merge_choice_and_limits(
    policy: &mut PolicySpec,
    choice: ToolChoiceSpec,
    limits: CallLimitsSpec,
) {
    policy.tool_choice = match (policy.tool_choice, choice) {
        (ToolChoiceSpec::None, _) | (_, ToolChoiceSpec::None) => ToolChoiceSpec::None,
        (ToolChoiceSpec::Required, _) | (_, ToolChoiceSpec::Required) => ToolChoiceSpec::Required,
        _ => ToolChoiceSpec::Auto,
    };
    let fewest = |one: Option<u32>, other: Option<u32>| one.into_iter().chain(other).min();
    let least = |one: Option<f64>, other: Option<f64>| one.into_iter().chain(other).reduce(f64::min);
    let known = policy.limits;
    policy.limits = CallLimitsSpec {
        calls_per_turn: fewest(known.calls_per_turn, limits.calls_per_turn),
        calls_per_conversation: fewest(known.calls_per_conversation, limits.calls_per_conversation),
        identical_calls: fewest(known.identical_calls, limits.identical_calls),
        cost_per_turn: least(known.cost_per_turn, limits.cost_per_turn),
        cost_per_conversation: least(known.cost_per_conversation, limits.cost_per_conversation),
    };
}

/// Adds what a file says of approvals. Of what several files say, the strictest counts.
///
/// The place of its callback comes back, if there is one.
pub(crate) fn approval(cx: Cx<'_>, field: Field<ApprovalBody>, spec: &mut ApprovalSpec) -> Option<Place> {
    let body = field.get().unwrap_or_default();
    let expires_after = body.expires_after.located().map(|(at, Period(period))| {
        if period.is_zero() {
            let hint = "leave it out for the usual 10m";
            cx.error(at, "nobody could decide in no time", hint);
        }
        period
    });
    let at = body.callback.given();
    let place = at.map(|at| cx.place(at));
    let callback = place.zip(health::webhook(cx, body.callback));
    if let (Some(at), Some((_, WebhookSpec { secret: None, .. }))) = (at, &callback) {
        cx.warning(
            at,
            "the callback is not signed: whoever gets one cannot tell who sent it",
            "add `secret: ${env:NAME}`, by which it is signed",
        );
    }
    merge_approval(
        spec,
        ApprovalSpec {
            required: patterns(body.required),
            separate_approver: body.separate_approver.get().unwrap_or_default(),
            expires_after,
            callbacks: callback.iter().map(|(_, callback)| callback.clone()).collect(),
        },
    );
    callback.map(|(place, _)| place)
}

/// The patterns of an approval section; none if there is none.
pub(crate) fn approval_required(field: &Field<ApprovalBody>) -> &Field<Vec<Field<String>>> {
    const ABSENT: &Field<Vec<Field<String>>> = &Field::ABSENT;
    field.as_ref().map_or(ABSENT, |body| &body.required)
}

/// Both together: the strictest counts.
pub(crate) fn merge_approval(spec: &mut ApprovalSpec, other: ApprovalSpec) {
    spec.required.extend(other.required);
    spec.callbacks.extend(other.callbacks);
    spec.separate_approver |= other.separate_approver;
    let shortest = [spec.expires_after, other.expires_after];
    spec.expires_after = shortest.into_iter().flatten().min();
}

/// What each principal is permitted, or what each pattern of tools requires.
pub(crate) fn permissions(field: Field<Entries<Vec<Field<String>>>>) -> BTreeMap<String, Vec<String>> {
    let entries = field.get().unwrap_or_default().into_iter();
    entries
        .map(|(principal, list)| (principal, texts(list)))
        .collect()
}
