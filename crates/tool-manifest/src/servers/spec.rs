use std::{collections::BTreeMap, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{DefinitionPolicy, Origin, Overrides, Pattern, PinMode, Template};

use crate::servers::{list_limits::ListLimitsSpec, sandbox::SandboxSpec, server_health::ServerHealthSpec};

/// An MCP server to take tools from.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerSpec {
    /// Its name, unique in the configuration.
    pub name: String,
    /// Place of its configuration.
    pub origin: Origin,
    /// Transport to the server.
    pub transport: ServerTransport,
    /// Time limit of one attempt; the default of the configuration if absent.
    pub timeout: Option<Duration>,
    /// Time limit of its start; the default of the configuration if absent.
    pub start_timeout: Option<Duration>,
    /// Settings of all of its tools, instead of the defaults.
    pub overrides: Overrides,
    /// The only tools and prompts that are offered, by the server's own names, and resources, by their URIs; all if
    /// absent.
    pub include: Option<Vec<Pattern>>,
    /// Tools and prompts that are not offered, by the server's own names, and resources, by their URIs.
    pub exclude: Vec<Pattern>,
    /// Other names for tools, by the server's own names. The prefix goes before the new names too.
    pub rename: BTreeMap<String, String>,
    /// Prefix of the names of its tools; see [`ServerSpec::prefix`].
    pub prefix: Option<String>,
    /// `true` if it is not used.
    pub disabled: bool,
    /// Revisions of the protocol that are tried.
    pub era: EraSpec,
    /// Calls that share a connection.
    pub isolation: IsolationSpec,
    /// Maximum number of connections for single clients; 16 if absent.
    pub max_connections: Option<usize>,
    /// Health check of the server.
    pub health: ServerHealthSpec,
    /// `true` if the gateway is ready only when the server is.
    pub required: bool,
    /// Interval at which its lists are read again if it announces no changes; the default of the configuration if
    /// absent.
    pub refresh_interval: Option<Duration>,
    /// Time of its start; the default of the configuration if absent.
    pub start: Option<StartMode>,
    /// Time for which it may be unused before it is stopped; the default of the configuration if absent, and never
    /// stopped if 0.
    pub idle_timeout: Option<Duration>,
    /// `true` if its lists are kept between runs; the default of the configuration if absent.
    pub keep_lists: Option<bool>,
    /// Handling of its suspicious definitions; that of the policy if absent.
    pub definitions: Option<DefinitionPolicy>,
    /// Pins of its definitions; those of the policy if absent.
    pub pin: Option<PinMode>,
    /// Limits of its lists, as far as they differ from the defaults.
    pub list_limits: ListLimitsSpec,
    /// The instructions that clients get in place of the server's own; its own if absent, and none if empty.
    pub instructions: Option<String>,
    /// Sandbox of its program; none if absent.
    pub sandbox: Option<SandboxSpec>,
}

/// Transport to a server.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerTransport {
    /// A process that is started, over its standard input and output.
    Stdio {
        /// Program to start.
        command: Template,
        /// Its arguments.
        args: Vec<Template>,
        /// Variables of its environment.
        env: BTreeMap<String, Template>,
        /// Names of variables that are handed down to it, in addition to those that a process needs to start; those
        /// of the configuration if absent.
        inherit_env: Option<Vec<String>>,
        /// The directory to start it in.
        cwd: Option<Template>,
        /// File with variables for its environment, which those of `env` replace.
        env_file: Option<Template>,
    },
    /// None: the server is not started, since its file asks for something that cannot be had here.
    Refused {
        /// Reason.
        reason: String,
    },
    /// An endpoint that listens.
    Http {
        /// Its URL.
        url: Template,
        /// Headers of every request.
        headers: BTreeMap<String, Template>,
        /// Protocol over HTTP.
        transport: HttpTransportSpec,
    },
}

/// Protocols for MCP over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum HttpTransportSpec {
    /// Streamable HTTP, or HTTP+SSE where that is refused.
    #[default]
    Either,
    /// Streamable HTTP.
    Streamable,
    /// HTTP+SSE, the transport of 2024-11-05.
    Sse,
    /// WebSocket.
    WebSocket,
}

/// Revisions of the protocol that are tried with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EraSpec {
    /// Either family, found out when it is first needed.
    #[default]
    Auto,
    /// Only those with a handshake: up to 2025-11-25.
    Legacy,
    /// Only those without: from 2026-07-28.
    Modern,
    /// Either family, and the one without a handshake if the server speaks both.
    Newest,
}

/// Time at which a server is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StartMode {
    /// At the first use, if its lists are kept from an earlier run; with the gateway otherwise, since only a running
    /// server can say what it offers.
    #[default]
    Lazy,
    /// With the gateway.
    Eager,
}

/// Calls of a server that share a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IsolationSpec {
    /// A client that can be asked for something has its own if the server speaks revisions up to 2025-11-25, which ask
    /// in the middle of a call; all others share one.
    #[default]
    Auto,
    /// All share one, over which such a server can ask nobody.
    Shared,
    /// Each session of a client has its own. Clients without sessions have one of their principal for one call at a
    /// time.
    Session,
    /// Each principal has its own; clients that can be asked for different things do not share it.
    Principal,
}

impl ServerSpec {
    /// A server with all of its tools under the usual prefix.
    #[must_use]
    pub fn new(name: impl Into<String>, transport: ServerTransport) -> Self {
        let name = name.into();
        let origin = Origin::operator(format!("server `{name}`"));
        Self {
            name,
            origin,
            transport,
            timeout: None,
            start_timeout: None,
            overrides: Overrides::default(),
            include: None,
            exclude: Vec::new(),
            rename: BTreeMap::new(),
            prefix: None,
            disabled: false,
            era: EraSpec::Auto,
            isolation: IsolationSpec::Auto,
            max_connections: None,
            health: ServerHealthSpec::default(),
            required: false,
            refresh_interval: None,
            start: None,
            idle_timeout: None,
            keep_lists: None,
            definitions: None,
            pin: None,
            list_limits: ListLimitsSpec::default(),
            instructions: None,
            sandbox: None,
        }
    }

    /// Returns the prefix of the names of the server's tools: the configured one, which may be empty, or the server's
    /// name and `__`.
    #[must_use]
    pub fn prefix(&self) -> String {
        match &self.prefix {
            Some(prefix) => prefix.clone(),
            None => format!("{}__", self.name),
        }
    }
}
