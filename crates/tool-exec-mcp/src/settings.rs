use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    sync::Arc,
    time::Duration,
};

use mcp_client::{Command, Endpoint, EraChoice, HealthCheck, HttpEndpoint};
use sha2::{Digest as _, Sha256};
use tool_core::{
    DefinitionPolicy, IfUnset, ListLimits, Pattern, Provider, Reference, ResourceUri, Secret, SecretError,
    Secrets, Template, outward_name,
};

/// Variables that programs need to reach the network through a private certificate authority or a proxy. They hold
/// paths, switches and addresses of proxies, and no credentials except in the URL of a proxy.
///
/// Programs read `HTTP_PROXY` and its kin in either case, and npm reads its settings in either case.
pub const NETWORK_VARIABLES: [&str; 31] = [
    // OpenSSL, and programs that use its names: Python, Go, Ruby, uv, rustls.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    // Node.js: more authorities, those of the system, and the variables of proxies below.
    "NODE_EXTRA_CA_CERTS",
    "NODE_USE_SYSTEM_CA",
    "NODE_USE_ENV_PROXY",
    // Deno.
    "DENO_CERT",
    "DENO_TLS_CA_STORE",
    // Python's `requests`, curl, git, pip, uv, botocore.
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "PIP_PROXY",
    "UV_NATIVE_TLS",
    "UV_SYSTEM_CERTS",
    "AWS_CA_BUNDLE",
    // npm.
    "npm_config_cafile",
    "npm_config_proxy",
    "npm_config_https_proxy",
    "npm_config_noproxy",
    "NPM_CONFIG_CAFILE",
    "NPM_CONFIG_PROXY",
    "NPM_CONFIG_HTTPS_PROXY",
    "NPM_CONFIG_NOPROXY",
    // Proxies.
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "NO_PROXY",
    "no_proxy",
    "ALL_PROXY",
    "all_proxy",
];

/// The executor kind of MCP servers.
pub(crate) const EXECUTOR_KIND: &str = "mcp";

/// Settings of an MCP server.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerSettings {
    /// Name of the server, unique among servers.
    pub name: String,
    /// The way to reach the server.
    pub target: ServerTarget,
    /// Time limit of one call of a tool. The default of the configuration applies if absent.
    pub timeout: Option<Duration>,
    /// Time limit for the server to start and list its tools.
    pub start_timeout: Duration,
    /// The only tools and prompts to offer, by their names at the server, and resources, by their URIs. All of them if
    /// absent.
    pub include: Option<Vec<Pattern>>,
    /// Tools and prompts to exclude, by their names at the server, and resources, by their URIs.
    pub exclude: Vec<Pattern>,
    /// Other names for tools, by their names at the server.
    pub rename: BTreeMap<String, String>,
    /// Prefix of the names of tools and prompts. URIs of resources are never changed.
    pub prefix: String,
    /// Protocol era of the server.
    pub era: EraChoice,
    /// Maximum size of one message of the server, in bytes.
    pub max_message: usize,
    /// Rule by which calls share connections.
    pub isolation: Isolation,
    /// Maximum number of dedicated connections, in addition to the shared one.
    pub max_connections: usize,
    /// Request that finds out whether the server is healthy.
    pub health_check: HealthCheck,
    /// `true` to run the health check after every start. The start fails if the check does.
    pub check_at_start: bool,
    /// Interval of health checks. There are none if absent.
    pub check_interval: Option<Duration>,
    /// Interval at which lists are read again whose changes the server does not announce and for which it sends no time
    /// to live.
    pub refresh_interval: Duration,
    /// `true` to cache its lists between runs, if there is a [`ListCache`](crate::ListCache).
    pub keep_lists: bool,
    /// `true` to start the server only when it is needed, if its lists are cached.
    pub is_lazy: bool,
    /// Time without use after which the server is stopped until it is needed again. It is never stopped if absent,
    /// while a call, task or subscription is open, or while it has dedicated connections.
    pub idle_timeout: Option<Duration>,
    /// Place of the idempotency key in requests of a server that does once what it receives twice with the same key.
    /// There is none if absent.
    pub key_place: Option<KeyPlace>,
    /// Policy for entries of its lists that hold suspicious text.
    pub definitions: DefinitionPolicy,
    /// Limits of its lists and their entries.
    pub list_limits: ListLimits,
    /// Instructions to give instead of the server's. The server's own if absent, and none if empty.
    pub instructions: Option<String>,
}

/// Place of a call's idempotency key in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPlace {
    /// The member of `_meta` with this key.
    Meta(String),
    /// The argument of this name, for tools that have it.
    Argument(String),
}

/// Decides which calls to a server share a connection. A client with a dedicated connection sees the lists of that
/// connection. All others see those of the shared connection.
///
/// Some servers list a tool only for clients that can be asked what the tool asks for. If no call uses the shared
/// connection ([`Session`](Self::Session), [`Principal`](Self::Principal)), it declares every capability and refuses
/// every request, so that such tools are on the list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isolation {
    /// A client that can be asked for something has a dedicated connection, if the server is of the legacy era, which
    /// asks in the middle of a call. Every other call uses the shared connection, and so do calls that find no
    /// connection left.
    #[default]
    Auto,
    /// All clients share one connection, over which a legacy server can ask nobody.
    Shared,
    /// Each session of a client has a dedicated connection. Clients without sessions have one of their principal for
    /// one call at a time.
    Session,
    /// Each principal has a dedicated connection. Clients that can be asked for different things do not share it.
    Principal,
}

/// The way to reach a server. References in the texts are resolved when the server is started.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerTarget {
    /// Program that speaks MCP on its standard input and output.
    Stdio {
        /// Program to start.
        command: Template,
        /// Arguments of the program.
        args: Vec<Template>,
        /// Variables of its environment, in addition to the safe base.
        env: BTreeMap<String, Template>,
        /// Names of variables that are copied from the gateway's environment if they are set there, such as
        /// [`NETWORK_VARIABLES`]. A variable in `env` replaces the copy.
        inherit: Vec<String>,
        /// Working directory.
        cwd: Option<Template>,
    },
    /// Endpoint that listens.
    Http {
        /// URL of the endpoint.
        url: Template,
        /// Headers to send with every request.
        headers: BTreeMap<String, Template>,
        /// Transport over HTTP.
        transport: HttpTransport,
    },
}

/// Transport of MCP over HTTP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HttpTransport {
    /// Streamable HTTP, or HTTP+SSE if the server refuses it with status 400, 404 or 405.
    #[default]
    Either,
    /// Streamable HTTP.
    Streamable,
    /// HTTP+SSE, the transport of 2024-11-05. The URL is that of the event stream.
    Sse,
    /// WebSocket, which begins as HTTP. The URL is `ws://` or `wss://`. It needs the feature `websocket`.
    WebSocket,
}

impl ServerSettings {
    /// Settings of a server with the defaults.
    #[must_use]
    pub fn new(name: impl Into<String>, target: ServerTarget) -> Self {
        let name = name.into();
        Self {
            prefix: format!("{name}__"),
            name,
            target,
            timeout: None,
            start_timeout: Duration::from_secs(20),
            include: None,
            exclude: Vec::new(),
            rename: BTreeMap::new(),
            era: EraChoice::default(),
            max_message: 16 * 1024 * 1024,
            isolation: Isolation::default(),
            max_connections: 16,
            health_check: HealthCheck::default(),
            check_at_start: false,
            check_interval: None,
            refresh_interval: Duration::from_secs(300),
            keep_lists: true,
            is_lazy: true,
            idle_timeout: None,
            key_place: None,
            definitions: DefinitionPolicy::default(),
            list_limits: ListLimits::default(),
            instructions: None,
        }
    }

    /// Returns `true` if a tool or prompt of this name is offered.
    pub(crate) fn offers_name(&self, own: &str) -> bool {
        let fits = |rule: &Pattern| rule.matches(own);
        self.include.as_ref().is_none_or(|rules| rules.iter().any(fits)) && !self.exclude.iter().any(fits)
    }

    /// Returns `true` if a resource or template of this URI is offered in the list.
    pub(crate) fn offers_listed_uri(&self, uri: &str) -> bool {
        self.offers_all()
            || ResourceUri::new("", uri).is_some_and(|uri| self.includes(&uri) && !self.excludes(&uri))
    }

    /// Returns `true` if a resource of this URI may be read or watched although the list does not contain it, for
    /// example as an instance of an offered template. A URI with `..` may not: links on the way make its target
    /// unknown.
    pub(crate) fn offers_unlisted_uri(&self, uri: &str, is_of_template: bool) -> bool {
        let is_taken = |uri: &ResourceUri<'_>| {
            (is_of_template || self.includes(uri)) && !self.excludes(uri) && !uri.has_dot_segments()
        };
        self.offers_all() || ResourceUri::new("", uri).as_ref().is_some_and(is_taken)
    }

    fn offers_all(&self) -> bool {
        self.include.is_none() && self.exclude.is_empty()
    }

    fn includes(&self, uri: &ResourceUri<'_>) -> bool {
        self.include.as_ref().is_none_or(|rules| uri.is_within(rules))
    }

    fn excludes(&self, uri: &ResourceUri<'_>) -> bool {
        self.exclude.iter().any(|rule| uri.could_match(rule))
    }

    /// Outward name of a tool.
    #[must_use]
    pub fn outward_tool_name(&self, tool: &str) -> String {
        let own = self.rename.get(tool).map_or(tool, String::as_str);
        outward_name(&format!("{}{own}", self.prefix))
    }

    /// Returns the prefix as it stands in outward names. It is cut if it leaves no room for the name.
    pub(crate) fn outward_prefix(&self) -> String {
        const LONGEST: usize = tool_core::MAX_NAME - 9;
        let mut prefix = match self.prefix.as_str() {
            "" => String::new(),
            prefix => outward_name(prefix),
        };
        prefix.truncate(LONGEST);
        prefix
    }

    /// Returns other names by which a tool may be known: its name in the server's list, and the name that it would have
    /// there if it was not renamed.
    pub(crate) fn alternative_names(&self, tool: &str, shown_as: &str) -> Vec<Arc<str>> {
        let unnamed = outward_name(&format!("{}{tool}", self.prefix));
        let mut names = vec![self.outward_tool_name(tool), unnamed];
        names.dedup();
        names.retain(|name| name != shown_as);
        names.into_iter().map(Arc::from).collect()
    }

    /// SHA-256 of the server's target as it is written, with references instead of their values.
    pub(crate) fn target_digest(&self) -> [u8; 32] {
        let mut hasher = HashWriter(Sha256::new());
        write!(hasher, "{:?}", self.target).expect("hashing does not fail");
        hasher.0.finalize().into()
    }

    /// Checks, without waiting, that every reference has a value.
    ///
    /// # Errors
    /// The first reference without a value.
    pub fn check(&self, secrets: &dyn Secrets) -> Result<(), SecretError> {
        self.target
            .texts()
            .iter()
            .try_for_each(|text| text.check(secrets))
    }
}

impl ServerTarget {
    /// Returns every text that may contain references.
    fn texts(&self) -> Vec<&Template> {
        match self {
            Self::Stdio {
                command,
                args,
                env,
                cwd,
                ..
            } => [command]
                .into_iter()
                .chain(args)
                .chain(env.values())
                .chain(cwd)
                .collect(),
            Self::Http { url, headers, .. } => [url].into_iter().chain(headers.values()).collect(),
        }
    }

    /// Returns every reference.
    pub(crate) fn references(&self) -> impl Iterator<Item = &Reference> {
        self.texts().into_iter().flat_map(Template::references)
    }

    /// Resolves every reference, and returns the endpoint.
    pub(crate) async fn resolve(&self, secrets: &dyn Secrets) -> Result<Endpoint, ResolveError> {
        match self {
            Self::Stdio {
                command,
                args,
                env,
                inherit,
                cwd,
            } => {
                let mut resolved = Command::new(command.resolve(secrets).await?.expose());
                for arg in args {
                    resolved = resolved.args([arg.resolve(secrets).await?.expose()]);
                }
                for name in inherit.iter().filter(|name| !env.contains_key(*name)) {
                    if let Some(value) = inherited_variable(name, secrets).await {
                        resolved = resolved.env(name, value.expose());
                    }
                }
                for (name, value) in env {
                    let value = value.resolve(secrets).await?;
                    secrets.learn_written(name, value.expose());
                    resolved = resolved.env(name, value.expose());
                }
                if let Some(cwd) = cwd {
                    resolved = resolved.current_dir(cwd.resolve(secrets).await?.expose());
                }
                Ok(Endpoint::Stdio(resolved))
            }
            Self::Http {
                url,
                headers,
                transport,
            } => {
                let is_websocket = *transport == HttpTransport::WebSocket;
                let endpoint = resolve_http(url, headers, is_websocket, secrets).await?;
                Ok(match transport {
                    HttpTransport::Either => Endpoint::Http(endpoint.with_sse_fallback()),
                    HttpTransport::Streamable => Endpoint::Http(endpoint),
                    HttpTransport::Sse => Endpoint::Sse(endpoint),
                    HttpTransport::WebSocket => Endpoint::WebSocket(endpoint),
                })
            }
        }
    }
}

/// Returns the value of a variable in the gateway's environment.
async fn inherited_variable(name: &str, secrets: &dyn Secrets) -> Option<Secret> {
    let reference = Reference::new(Provider::Environment, name.to_owned());
    secrets.get(&reference).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "an environment variable is not inherited");
        None
    })
}

async fn resolve_http(
    url: &Template,
    headers: &BTreeMap<String, Template>,
    is_websocket: bool,
    secrets: &dyn Secrets,
) -> Result<HttpEndpoint, ResolveError> {
    let url = url.resolve(secrets).await?;
    let mut endpoint = match is_websocket {
        true => HttpEndpoint::websocket(url.expose())?,
        false => HttpEndpoint::new(url.expose())?,
    };
    for (name, value) in headers {
        let value = value.resolve(secrets).await?;
        secrets.learn_written(name, value.expose());
        endpoint = endpoint.header(name, value.expose())?;
    }
    Ok(endpoint)
}

/// Error of resolving the target in a server's settings.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ResolveError {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Endpoint(#[from] mcp_client::ClientError),
}

/// Hashes text as it is written, so that the whole text is never held.
struct HashWriter(Sha256);

impl fmt::Write for HashWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tool_testkit::{file_readers, file_spelling};

    use super::*;

    fn settings(include: Option<&str>, exclude: Option<&str>) -> ServerSettings {
        let target = ServerTarget::Http {
            url: Template::parse("http://localhost").unwrap(),
            headers: BTreeMap::new(),
            transport: HttpTransport::default(),
        };
        let rules = |rule: Option<&str>| rule.map(|rule| vec![Pattern::new(rule)]);
        ServerSettings {
            include: rules(include),
            exclude: rules(exclude).unwrap_or_default(),
            ..ServerSettings::new("files", target)
        }
    }

    proptest! {
        #[test]
        fn a_uri_that_any_reader_takes_for_an_excluded_file_is_not_offered(
            choices in prop::collection::vec(any::<u8>(), 100),
        ) {
            let uri = file_spelling("/secret/key.txt", &choices);
            let is_read = |path: Option<String>| path.is_some_and(|path| path.starts_with("/secret/"));
            if file_readers().iter().any(|(_, read)| is_read(read(&uri))) {
                for settings in [settings(None, Some("file:///secret/*")), settings(Some("file:///open/*"), None)] {
                    prop_assert!(!settings.offers_listed_uri(&uri), "{uri:?}");
                    prop_assert!(!settings.offers_unlisted_uri(&uri, false), "{uri:?}");
                }
                prop_assert!(!settings(None, Some("file:///secret/*")).offers_unlisted_uri(&uri, true), "{uri:?}");
            }
        }
    }
}
