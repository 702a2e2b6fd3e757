use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    num::NonZeroUsize,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{DefinitionPolicy, Descriptor, ListLimits, Overrides, Pattern, PinMode, Template};

use crate::{
    AlertsSpec, AuthoringSpec, EndpointSpec, HealthSpec, SearchSpec, ServerSpec, StartMode, StoreSpec,
    UsageSpec, WebhookSpec,
};

/// A configuration: all files together, whatever dialect they are in.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Configuration {
    /// MCP servers to take tools from, in the order of the files.
    pub servers: Vec<ServerSpec>,
    /// Command endpoints to take tools from, in the order of the files.
    pub endpoints: Vec<EndpointSpec>,
    /// Tools that are written out, in the order of the files.
    pub tools: Vec<Arc<Descriptor>>,
    /// Settings of tools and servers that set none of their own.
    pub defaults: Defaults,
    /// Rules about who may call what.
    pub policy: PolicySpec,
    /// Sources of the values of `${secret:NAME}`.
    pub secrets: BTreeMap<String, Template>,
    /// Settings of the HTTP gateway.
    pub gateway: GatewaySpec,
    /// Store of tools with versions, tokens and approvals. The program opens it: a toolplane gets it by its builder.
    pub store: StoreSpec,
    /// Settings of the figures of calls that the store keeps.
    pub usage: UsageSpec,
    /// Settings of the health of tools and servers.
    pub health: HealthSpec,
    /// Settings of alerts to operators.
    pub alerts: AlertsSpec,
    /// Settings of the search over tools.
    pub search: SearchSpec,
    /// Settings of tools that agents make.
    pub authoring: AuthoringSpec,
}

/// Settings of tools and servers that set none of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Defaults {
    /// Time limit of a whole call, queueing and retries included: 60 s.
    pub call_timeout: Duration,
    /// Time limit of one attempt: 30 s.
    pub attempt_timeout: Duration,
    /// Time limit of connecting: 5 s.
    pub connect_timeout: Duration,
    /// Time limit of a server's start: 20 s.
    pub start_timeout: Duration,
    /// Interval at which lists of servers are read again that announce no changes: 5 min.
    pub refresh_interval: Duration,
    /// Time at which servers are started: lazily.
    pub start: StartMode,
    /// Time for which a server may be unused before it is stopped; never stopped if absent.
    pub idle_timeout: Option<Duration>,
    /// Maximum number of servers that start at the same time: 8.
    pub max_concurrent_starts: NonZeroUsize,
    /// `true` if the lists of servers are kept between runs: they are.
    pub keep_lists: bool,
    /// Names of environment variables that are handed down to started servers, in addition to those that a process
    /// needs to start; those of certificate authorities and proxies if absent.
    pub inherit_env: Option<Vec<String>>,
    /// Interpreters that tools with code may name, in addition to `bash`, `sh` and `python`, or instead of them.
    pub interpreters: BTreeMap<String, PathBuf>,
    /// Settings of the engine that runs containers.
    pub container: ContainerSpec,
    /// Maximum size of a result, in bytes: 16 MiB.
    pub max_result_bytes: usize,
    /// Other settings of tools and servers that set none of their own.
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
            interpreters: BTreeMap::new(),
            container: ContainerSpec::default(),
            max_result_bytes: 16 << 20,
            overrides: Overrides::default(),
            list_limits: ListLimits::default(),
        }
    }
}

/// Settings of the engine that runs the tools of kind `docker`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContainerSpec {
    /// Path of its socket; found by variables and usual places if absent.
    pub socket: Option<PathBuf>,
    /// `true` if it pulls images that it does not have, for tools in files.
    pub pulls: bool,
}

impl ContainerSpec {
    /// Returns `true` if a configuration says something about the engine.
    #[must_use]
    pub fn is_written(&self) -> bool {
        *self != Self::default()
    }
}

/// Rules about who may call what.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct PolicySpec {
    /// Tools that nobody may call, by the names that agents see.
    pub blocklist: Vec<Pattern>,
    /// The only tools that may be called; all if absent.
    pub allowlist: Option<Vec<Pattern>>,
    /// Permissions of each principal.
    pub permissions: BTreeMap<String, Vec<String>>,
    /// Permissions of each role.
    pub roles: BTreeMap<String, Vec<String>>,
    /// Settings of each principal.
    pub principals: BTreeMap<String, PrincipalSpec>,
    /// Permissions that tools require in addition to their own, by patterns of the names that agents see.
    pub required_permissions: BTreeMap<String, Vec<String>>,
    /// Rules about approvals.
    pub approval: ApprovalSpec,
    /// Rule about tool calls of a model.
    pub tool_choice: ToolChoiceSpec,
    /// Limits of turns and conversations.
    pub limits: CallLimitsSpec,
    /// Settings of layers.
    pub settings: Overrides,
    /// Handling of suspicious definitions of servers that do not set their own.
    pub definitions: DefinitionPolicy,
    /// Pins of the definitions of servers that do not set their own; pinned at first use if absent.
    pub pin: Option<PinMode>,
}

/// Settings of a principal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PrincipalSpec {
    /// Tenant; that of the credentials if absent.
    pub tenant: Option<String>,
    /// Names of roles.
    pub roles: Vec<String>,
    /// Permissions in addition to those of the roles and of [`PolicySpec::permissions`].
    pub permissions: Vec<String>,
}

/// Rule about tool calls of a model: it may, must or must not call tools.
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

/// Limits of turns and conversations. An absent one is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct CallLimitsSpec {
    /// Calls in one turn.
    pub calls_per_turn: Option<u32>,
    /// Calls in one conversation.
    pub calls_per_conversation: Option<u32>,
    /// Calls with the same tool and arguments in one conversation.
    pub identical_calls: Option<u32>,
    /// Costs of the calls of one turn, in US dollars.
    pub cost_per_turn: Option<f64>,
    /// Costs of the calls of one conversation, in US dollars.
    pub cost_per_conversation: Option<f64>,
}

/// Rules about approvals, in addition to the settings of tools and servers.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ApprovalSpec {
    /// Tools that nobody calls without approval, by the names that agents see.
    pub required: Vec<Pattern>,
    /// `true` if somebody other than the caller must decide.
    pub separate_approver: bool,
    /// Time for which an approval can be given and used; 10 min if absent.
    pub expires_after: Option<Duration>,
    /// Webhooks that receive every approval that is asked for or decided.
    pub callbacks: Vec<WebhookSpec>,
}

impl Configuration {
    /// Settings of all levels: of each server and endpoint, of each tool, and the defaults.
    pub fn overrides(&self) -> impl Iterator<Item = &Overrides> {
        let servers = self.servers.iter().map(|server| &server.overrides);
        let tools = self.tools.iter().map(|tool| &tool.overrides);
        let endpoints = self.endpoints.iter().map(|endpoint| &endpoint.overrides);
        servers
            .chain(endpoints)
            .chain(tools)
            .chain([&self.defaults.overrides])
    }
}

/// Settings of the HTTP gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewaySpec {
    /// The address to listen on: `127.0.0.1:7080`.
    pub listen: SocketAddr,
    /// Authentication of clients over HTTP: none.
    pub auth: AuthenticationSpec,
    /// Hosts that requests may be addressed to, besides the address itself.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may use the gateway and read its answers.
    pub allowed_origins: Vec<String>,
    /// Instructions for models, before those of the servers.
    pub instructions: Option<String>,
    /// URL at which others reach the gateway, without which APIs cannot call back.
    pub public_url: Option<String>,
    /// Path for clients of HTTP+SSE, the transport of 2024-11-05; they are not served if absent.
    pub sse_path: Option<String>,
    /// `true` if metrics are served at `/metrics` of the same address.
    pub metrics: bool,
    /// Address at which metrics are served separately; they are not if absent.
    pub metrics_listen: Option<SocketAddr>,
    /// Time for which a list waits for a server that is started for the first time: 4 s.
    pub list_wait: Duration,
    /// Tools that clients are listed: all.
    pub mode: GatewayMode,
    /// Tools that are listed in each mode.
    pub pinned: Vec<Pattern>,
}

/// Tools that the gateway lists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[non_exhaustive]
pub enum GatewayMode {
    /// All tools.
    #[default]
    List,
    /// The meta-tools, with which clients search, and the pinned tools. All others can be called nonetheless.
    Search,
    /// As `List` for a caller that may see few tools, otherwise as `Search`.
    Auto,
}

impl GatewayMode {
    /// Names of the meta-tools, which no other tool may have unless all tools are listed.
    pub const META_TOOLS: &'static [&'static str] = &["tool_call", "tool_describe", "tool_search"];

    /// Returns the word in a configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Search => "search",
            Self::Auto => "auto",
        }
    }
}

/// Authentication of clients over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Authentication")]
#[non_exhaustive]
pub enum AuthenticationSpec {
    /// Every client is `anonymous`. Only an address of this machine can be listened at.
    #[default]
    None,
    /// Every request needs a static token in `Authorization: Bearer`, as `toolplane tokens create` makes them.
    Tokens,
}

impl Default for GatewaySpec {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7080)),
            auth: AuthenticationSpec::None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            instructions: None,
            public_url: None,
            sse_path: None,
            metrics: false,
            metrics_listen: None,
            list_wait: Duration::from_secs(4),
            mode: GatewayMode::default(),
            pinned: Vec::new(),
        }
    }
}
