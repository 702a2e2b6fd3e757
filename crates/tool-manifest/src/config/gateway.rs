use schemars::JsonSchema;
use serde::Deserialize;
use tool_settings::{Field, NodeId, Period};

use crate::{
    AuthenticationSpec, GatewayMode, GatewaySpec,
    config::{listen::Listen, origins},
    document::{lists::patterns, place::Cx, suggest},
    tools::metadata::texts,
};

/// The HTTP gateway.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Gateway")]
pub(crate) struct GatewayBody {
    /// The address to listen on; `127.0.0.1:7080` by default.
    listen: Field<Listen>,
    /// Authentication of clients; none by default. An address that is not of this machine requires it.
    auth: Field<AuthenticationSpec>,
    /// Hosts that requests may be addressed to, in addition to the address itself, such as `tools.example.com`.
    allowed_hosts: Field<Vec<Field<String>>>,
    /// Origins of web pages that may use the gateway and read its answers (CORS), such as
    /// `https://inspector.example.com` or `http://localhost:6274`; only pages of the gateway's own origin by default.
    allowed_origins: Field<Vec<Field<String>>>,
    /// Instructions for models on how to use the tools: clients get them before those of the servers.
    instructions: Field<String>,
    /// URL at which others reach this gateway, such as `https://tools.example.com`. APIs call back below it: see
    /// `async.callback` of HTTP tools.
    public_url: Field<String>,
    /// Path for old clients that speak HTTP+SSE, the transport of 2024-11-05, such as `/sse`; they are not served by
    /// default.
    sse_path: Field<String>,
    /// Serves metrics for Prometheus at `/metrics` of the same address; off by default.
    metrics: Field<bool>,
    /// An address of this machine at which metrics are served by themselves, also with `--stdio`, such as
    /// `127.0.0.1:9464`.
    metrics_listen: Field<Listen>,
    /// Time for which a list waits for a server without a known list, counted from its first start; 4s by default.
    /// Servers that are missing then are named in `_meta`, and clients are notified when they are there. With `0s` no
    /// list waits.
    list_wait: Field<Period>,
    /// Tools that clients are listed: `list` for all (the default), `search` for `tool_search`, `tool_describe` and
    /// `tool_call` alone, with which clients find and call the others, and `auto` for all if the caller may see few and
    /// for `search` otherwise.
    mode: Field<GatewayMode>,
    /// Tools that are listed in each mode: names, or patterns such as `github__*`.
    pinned: Field<Vec<Field<String>>>,
}

impl GatewayBody {
    /// Returns the pinned patterns with their places.
    pub(crate) fn pinned(&self) -> Vec<(String, NodeId)> {
        let items = self.pinned.as_ref().into_iter().flatten();
        items
            .filter_map(|item| Some((item.as_ref()?.clone(), item.given()?)))
            .collect()
    }
}

pub(crate) fn gateway(cx: Cx<'_>, body: GatewayBody) -> GatewaySpec {
    let mut gateway = GatewaySpec {
        allowed_hosts: texts(body.allowed_hosts),
        allowed_origins: origins::read(cx, body.allowed_origins),
        ..GatewaySpec::default()
    };
    gateway.auth = body.auth.get().unwrap_or_default();
    if let Some(Listen(listen)) = body.listen.get() {
        gateway.listen = listen;
    }
    if let Some(Period(wait)) = body.list_wait.get() {
        gateway.list_wait = wait;
    }
    gateway.mode = body.mode.get().unwrap_or_default();
    gateway.pinned = patterns(body.pinned);
    gateway.instructions = body.instructions.get();
    gateway.metrics = body.metrics.get().unwrap_or_default();
    gateway.metrics_listen = body.metrics_listen.get().map(|Listen(listen)| listen);
    if let Some((at, url)) = body.public_url.located() {
        if !is_base_url(&url) {
            cx.error(
                at,
                format!("`{}` is no URL that others can be told", suggest::shown(&url)),
                "write scheme, host and perhaps a port and a path, such as `https://tools.example.com`",
            );
        }
        gateway.public_url = Some(url);
    }
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

/// Returns `true` if paths can be appended to a URL.
fn is_base_url(url: &str) -> bool {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        let is_host = rest.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '[');
        is_host
            && rest
                .chars()
                .all(|letter| letter.is_ascii_graphic() && !"?#@\\".contains(letter))
    })
}

/// Paths at which the gateway serves other things.
const TAKEN: [&str; 6] = ["/mcp", "/health", "/healthz", "/readyz", "/metrics", "/callbacks"];
