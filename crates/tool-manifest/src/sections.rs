use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    Defaults, GatewaySpec,
    field::{Entries, Field},
    idempotency::{self, IdempotenciesBody},
    limits::{self, ConcurrenciesBody, RateLimitsBody},
    metadata::texts,
    overrides::{self, ArgumentsWord, BreakerBody, OverrideFields, RedactionWord, RetryBody},
    place::Cx,
    units::{Bytes, Listen, Period},
};

/// Limits for whatever sets none of its own.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Defaults")]
pub(crate) struct DefaultsBody {
    /// How long a call may take in all, queueing and retries included; 60s if it is not given.
    call_timeout: Field<Period>,
    /// How long one attempt may take; 30s if it is not given. A tool's `timeout_ms` wins.
    attempt_timeout: Field<Period>,
    /// How long a connection may take; 5s if it is not given.
    connect_timeout: Field<Period>,
    /// How long a server may take to start; 20s if it is not given.
    start_timeout: Field<Period>,
    /// How large a result may be; 16MiB if it is not given.
    max_result_bytes: Field<Bytes>,
    /// When failed calls are tried again; never if it is not given. That of a server or tool is in its place.
    retry: Field<RetryBody>,
    /// When tools and what they depend on are held back after failures; never if it is not given. That of a server or
    /// tool is in its place.
    breaker: Field<BreakerBody>,
    /// What is done with arguments that do not fit; they are refused if it is not given. That of a server or tool is in
    /// its place.
    arguments: Field<ArgumentsWord>,
    /// What is hidden in what tools give back; `secrets` if it is not given. That of a server or tool is in its place.
    redaction: Field<RedactionWord>,
    /// How often tools may be called; as often as one likes if it is not given.
    rate_limit: Field<RateLimitsBody>,
    /// How many calls may run at once; any number if it is not given.
    concurrency: Field<ConcurrenciesBody>,
    /// What becomes of calls with an idempotency key. That of a server or tool is in its place.
    idempotency: Field<IdempotenciesBody>,
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
    /// Origins that a browser may send requests from, such as `https://inspector.example.com`.
    allowed_origins: Field<Vec<Field<String>>>,
    /// The path at which old clients are served that speak HTTP+SSE, the transport of 2024-11-05, such as `/sse`; they
    /// are not served if it is not given.
    sse_path: Field<String>,
    /// Whether metrics for Prometheus are served at `/metrics` of the same address; they are not if it is not given.
    metrics: Field<bool>,
    /// An address of this machine at which metrics are served by themselves, also with `--stdio`, such as
    /// `127.0.0.1:9464`.
    metrics_listen: Field<Listen>,
}

/// Who may call what.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Policy")]
pub(crate) struct PolicyBody {
    /// Tools that nobody may call, by the names that agents see; `*` stands for any characters.
    pub(crate) blocklist: Field<Vec<Field<String>>>,
    /// The only tools that may be called, by the names that agents see; `*` stands for any characters.
    pub(crate) allowlist: Field<Vec<Field<String>>>,
    /// What each principal is permitted: `local: [network.external]`.
    pub(crate) permissions: Field<Entries<Vec<Field<String>>>>,
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
    if let Some((at, Bytes(bytes))) = body.max_result_bytes.located() {
        if bytes == 0 {
            cx.error(at, "no result fits into 0 bytes", "leave it out for the default");
        }
        defaults.max_result_bytes = bytes;
    }
    defaults.overrides = overrides::overrides(
        cx,
        OverrideFields {
            retry: body.retry,
            breaker: body.breaker,
            arguments: body.arguments,
            redaction: body.redaction,
        },
    );
    defaults.limits = limits::limits(cx, body.rate_limit, body.concurrency);
    idempotency::defaults(cx, body.idempotency, &mut defaults);
    defaults
}

pub(crate) fn gateway(cx: Cx<'_>, body: GatewayBody) -> GatewaySpec {
    let mut gateway = GatewaySpec {
        allowed_hosts: texts(body.allowed_hosts),
        allowed_origins: texts(body.allowed_origins),
        ..GatewaySpec::default()
    };
    if let Some(Listen(listen)) = body.listen.get() {
        gateway.listen = listen;
    }
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

/// What each principal is permitted.
pub(crate) fn permissions(field: Field<Entries<Vec<Field<String>>>>) -> BTreeMap<String, Vec<String>> {
    let entries = field.get().unwrap_or_default().into_iter();
    entries
        .map(|(principal, list)| (principal, texts(list)))
        .collect()
}
