use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tool_core::{Descriptor, Limits, Overrides, Pattern, Template};

use crate::{AlertsSpec, HealthSpec, ServerSpec};

/// What is to be served, and how: all files together, whatever spelling they are in.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Configuration {
    /// MCP servers to take tools from, in the order of the files.
    pub servers: Vec<ServerSpec>,
    /// Tools that are written out, in the order of the files.
    pub tools: Vec<Arc<Descriptor>>,
    /// Limits for whatever sets none of its own.
    pub defaults: Defaults,
    /// Who may call what.
    pub policy: PolicySpec,
    /// Where `${secret:NAME}` gets its values from.
    pub secrets: BTreeMap<String, Template>,
    /// How tools are served over HTTP.
    pub gateway: GatewaySpec,
    /// How the health of tools and servers is watched.
    pub health: HealthSpec,
    /// When operators are told that something is not well, and how.
    pub alerts: AlertsSpec,
}

/// Limits for whatever sets none of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Defaults {
    /// How long a call may take in all, queueing and retries included: 60 s.
    pub call_timeout: Duration,
    /// How long one attempt may take: 30 s.
    pub attempt_timeout: Duration,
    /// How long a connection may take: 5 s.
    pub connect_timeout: Duration,
    /// How long a server may take to start: 20 s.
    pub start_timeout: Duration,
    /// How many bytes a result may have: 16 MiB.
    pub max_result_bytes: usize,
    /// What else holds for tools and servers that set nothing in its place.
    pub overrides: Overrides,
    /// How much tools may be used: as much as one likes.
    pub limits: Limits,
    /// How many calls with an idempotency key are remembered: 10000 if absent.
    pub max_keys: Option<usize>,
    /// How many bytes that may take, answers included: 64 MiB if absent.
    pub max_key_bytes: Option<usize>,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            call_timeout: Duration::from_secs(60),
            attempt_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            start_timeout: Duration::from_secs(20),
            max_result_bytes: 16 << 20,
            overrides: Overrides::default(),
            limits: Limits::default(),
            max_keys: None,
            max_key_bytes: None,
        }
    }
}

/// Where a server takes the idempotency key of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPlace {
    /// Under this key of `_meta`.
    Meta(String),
    /// As this argument of the tool.
    Argument(String),
}

/// Who may call what.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PolicySpec {
    /// Tools that nobody may call, by the names that agents see.
    pub blocklist: Vec<Pattern>,
    /// The only tools that may be called; all if absent.
    pub allowlist: Option<Vec<Pattern>>,
    /// What each principal is permitted.
    pub permissions: BTreeMap<String, Vec<String>>,
}

/// How tools are served over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewaySpec {
    /// The address to listen on: `127.0.0.1:7080`.
    pub listen: SocketAddr,
    /// Hosts that requests may be addressed to, besides the address itself.
    pub allowed_hosts: Vec<String>,
    /// Origins that a browser may send requests from.
    pub allowed_origins: Vec<String>,
    /// The path at which clients of HTTP+SSE, the transport of 2024-11-05, are served; they are not if absent.
    pub sse_path: Option<String>,
    /// Whether metrics are served at `/metrics` of the same address.
    pub metrics: bool,
    /// The address at which metrics are served by themselves; they are not if absent.
    pub metrics_listen: Option<SocketAddr>,
}

impl Default for GatewaySpec {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7080)),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            sse_path: None,
            metrics: false,
            metrics_listen: None,
        }
    }
}
