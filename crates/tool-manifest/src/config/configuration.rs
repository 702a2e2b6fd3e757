use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    num::NonZeroUsize,
    sync::Arc,
    time::Duration,
};

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{DefinitionPolicy, Descriptor, ListLimits, Overrides, Pattern, Template};

use crate::{AlertsSpec, HealthSpec, ServerSpec, StartMode, WebhookSpec};

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
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// How often lists of servers are read again that tell of no changes: 5 min.
    pub refresh_interval: Duration,
    /// When servers are started: lazily.
    pub start: StartMode,
    /// How long a server may be unused before it is stopped; never if absent.
    pub idle_timeout: Option<Duration>,
    /// How many servers are started at the same time: 8.
    pub max_concurrent_starts: NonZeroUsize,
    /// Whether the lists of servers are kept between runs: they are.
    pub keep_lists: bool,
    /// Names of environment variables that are handed down to servers that are started, beside what a process needs to
    /// start; those of certificate authorities and proxies if absent.
    pub inherit_env: Option<Vec<String>>,
    /// How many bytes a result may have: 16 MiB.
    pub max_result_bytes: usize,
    /// What else holds for tools and servers that set nothing in its place.
    pub overrides: Overrides,
    /// Limits of the lists of servers.
    pub list_limits: ListLimits,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            call_timeout: Duration::from_secs(60),
            attempt_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            start_timeout: Duration::from_secs(20),
            refresh_interval: Duration::from_secs(300),
            start: StartMode::Lazy,
            idle_timeout: None,
            max_concurrent_starts: NonZeroUsize::new(8).expect("8 is not 0"),
            keep_lists: true,
            inherit_env: None,
            max_result_bytes: 16 << 20,
            overrides: Overrides::default(),
            list_limits: ListLimits::default(),
        }
    }
}

/// Who may call what.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct PolicySpec {
    /// Tools that nobody may call, by the names that agents see.
    pub blocklist: Vec<Pattern>,
    /// The only tools that may be called; all if absent.
    pub allowlist: Option<Vec<Pattern>>,
    /// What each principal is permitted.
    pub permissions: BTreeMap<String, Vec<String>>,
    /// What tools require beside what they ask for themselves, by patterns of the names that agents see.
    pub required_permissions: BTreeMap<String, Vec<String>>,
    /// Which calls somebody must approve, and how.
    pub approval: ApprovalSpec,
    /// Whether a model may, must or must not call tools.
    pub tool_choice: ToolChoiceSpec,
    /// How much may be called in a turn and in a conversation.
    pub limits: CallLimitsSpec,
    /// Settings of layers.
    pub settings: Overrides,
    /// How suspicious definitions are handled of servers that do not say so themselves.
    pub definitions: DefinitionPolicy,
}

/// Whether a model may, must or must not call tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ToolChoice")]
pub enum ToolChoiceSpec {
    /// It may.
    #[default]
    Auto,
    /// It must, in each turn. A gateway does not see the ends of turns: this is for programs that run the loop of an agent.
    Required,
    /// It must not: no tool is shown, and none can be called.
    None,
}

/// How much may be called in a turn and in a conversation. What is absent is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct CallLimitsSpec {
    /// Calls in one turn.
    pub calls_per_turn: Option<u32>,
    /// Calls in one conversation.
    pub calls_per_conversation: Option<u32>,
    /// The same call in one conversation.
    pub identical_calls: Option<u32>,
    /// What the calls of one turn may cost, in US dollars.
    pub cost_per_turn: Option<f64>,
    /// What the calls of one conversation may cost, in US dollars.
    pub cost_per_conversation: Option<f64>,
}

/// Which calls somebody must approve, beside those of tools and servers whose own settings say so, and how.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ApprovalSpec {
    /// What nobody calls without approval, by the names that agents see.
    pub required: Vec<Pattern>,
    /// Whether somebody else than the caller must decide.
    pub separate_approver: bool,
    /// How long an approval can be given and used; 10 min if absent.
    pub expires_after: Option<Duration>,
    /// Who is told of every approval that is asked for or decided.
    pub callbacks: Vec<WebhookSpec>,
}

impl Configuration {
    /// Settings of all levels: of each server, of each tool, and the defaults.
    pub fn overrides(&self) -> impl Iterator<Item = &Overrides> {
        let servers = self.servers.iter().map(|server| &server.overrides);
        let tools = self.tools.iter().map(|tool| &tool.overrides);
        servers.chain(tools).chain([&self.defaults.overrides])
    }
}

/// How tools are served over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewaySpec {
    /// The address to listen on: `127.0.0.1:7080`.
    pub listen: SocketAddr,
    /// Hosts that requests may be addressed to, besides the address itself.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may use the gateway and read its answers.
    pub allowed_origins: Vec<String>,
    /// Instructions for models, before those of the servers.
    pub instructions: Option<String>,
    /// The path at which clients of HTTP+SSE, the transport of 2024-11-05, are served; they are not if absent.
    pub sse_path: Option<String>,
    /// Whether metrics are served at `/metrics` of the same address.
    pub metrics: bool,
    /// The address at which metrics are served by themselves; they are not if absent.
    pub metrics_listen: Option<SocketAddr>,
    /// How long a list waits for a server that is started for the first time: 4 s.
    pub list_wait: Duration,
}

impl Default for GatewaySpec {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7080)),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            instructions: None,
            sse_path: None,
            metrics: false,
            metrics_listen: None,
            list_wait: Duration::from_secs(4),
        }
    }
}
