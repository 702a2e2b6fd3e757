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
/// paths, switches and addresses of proxies; no other credential than one in the URL of a proxy.
///
/// Programs read `HTTP_PROXY` and its kin in either case, and npm reads its settings in either case.
pub const NETWORK_VARIABLES: [&str; 31] = [
    // OpenSSL and what follows its names: Python, Go, Ruby, uv, rustls.
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

/// An MCP server, as configured.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerSettings {
    /// Its name among servers.
    pub name: String,
    /// How it is reached.
    pub target: ServerTarget,
    /// How long one call of a tool may take; the default of the configuration if absent.
    pub timeout: Option<Duration>,
    /// How long it may take to start and list its tools.
    pub start_timeout: Duration,
    /// The only tools and prompts to take, by their own names, and resources, by their URIs; all of them if absent.
    pub include: Option<Vec<Pattern>>,
    /// Tools and prompts to leave out, by their own names, and resources, by their URIs.
    pub exclude: Vec<Pattern>,
    /// Other names for tools, by their own names.
    pub rename: BTreeMap<String, String>,
    /// What stands before the name of a tool or prompt. URIs of resources are never changed.
    pub prefix: String,
    /// Which era of the protocol it speaks.
    pub era: EraChoice,
    /// How large a message of it may be, in bytes.
    pub max_message: usize,
    /// Which calls share a connection.
    pub isolation: Isolation,
    /// How many connections there may be at once for single clients, beside the one that is shared.
    pub max_connections: usize,
    /// What it is asked to find out whether it is well.
    pub health_check: HealthCheck,
    /// Whether it is asked that whenever it was started, and has failed to start if it is not well.
    pub check_at_start: bool,
    /// How often it is asked that; never if absent.
    pub check_interval: Option<Duration>,
    /// How often its lists are read again of whose changes it does not tell, where it does not say how long they stay as
    /// they are.
    pub refresh_interval: Duration,
    /// Whether its lists are kept between runs, where there is a [`ListCache`](crate::ListStore).
    pub keep_lists: bool,
    /// Whether it is left alone until somebody needs it, where its lists are known.
    pub is_lazy: bool,
    /// How long it may be unused before it is stopped, until somebody needs it again; never if absent. It is not stopped while
    /// a call, task or subscription of it is open, nor while it has connections for single clients.
    pub idle_timeout: Option<Duration>,
    /// Where it takes the idempotency key of a call, and does once what it is told twice; nowhere if absent.
    pub key_place: Option<KeyPlace>,
    /// Policy for entries of its lists that hold suspicious text.
    pub definitions: DefinitionPolicy,
    /// Limits of its lists and their entries.
    pub list_limits: ListLimits,
    /// The instructions to give in place of its own; its own if absent, and none if empty.
    pub instructions: Option<String>,
}

/// Where a server takes the idempotency key of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPlace {
    /// Under this key of `_meta`.
    Meta(String),
    /// As this argument of those tools that have it.
    Argument(String),
}

/// Which calls of a server share a connection. A client that has a connection of its own sees the lists of that one;
/// all others see those of the shared connection.
///
/// There are servers that list a tool only for clients that can be asked what the tool asks for. Where no call shares
/// the connection ([`Session`](Self::Session), [`Principal`](Self::Principal)), it declares everything and answers
/// nothing, so that such tools are on the list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isolation {
    /// A call whose client can be asked for something has a connection of that client, if the server is of the legacy
    /// era, which asks in the middle of a call. Every other call is made over the shared connection, and so are those
    /// for which there is no connection left.
    #[default]
    Auto,
    /// All share one connection, over which a legacy server can ask nobody.
    Shared,
    /// Each session of a client has its own. Clients without sessions have one of their principal for one call at a
    /// time.
    Session,
    /// Each principal has its own; clients that can be asked for different things do not share it.
    Principal,
}

/// How a server is reached. References in the texts get their values when the server is started.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerTarget {
    /// A program that speaks on its standard input and output.
    Stdio {
        /// The program.
        command: Template,
        /// Its arguments.
        args: Vec<Template>,
        /// Variables of its environment beyond the safe base.
        env: BTreeMap<String, Template>,
        /// Names of variables that are copied from the environment of the gateway where they are set there, such as
        /// [`NETWORK_VARIABLES`]. A variable in `env` replaces the copy.
        inherit: Vec<String>,
        /// The directory that it runs in.
        cwd: Option<Template>,
    },
    /// An endpoint that listens.
    Http {
        /// Its URL.
        url: Template,
        /// Headers to send with every request.
        headers: BTreeMap<String, Template>,
        /// What it speaks over HTTP.
        transport: HttpTransport,
    },
}

/// Which of the ways there are to speak MCP over HTTP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HttpTransport {
    /// Streamable HTTP, or HTTP+SSE where that is refused with status 400, 404 or 405.
    #[default]
    Either,
    /// Streamable HTTP.
    Streamable,
    /// HTTP+SSE, the transport of 2024-11-05: the URL is that of the stream of events.
    Sse,
    /// WebSocket, which begins as HTTP: the URL is `ws://` or `wss://`. It needs the feature `websocket`.
    WebSocket,
}

impl ServerSettings {
    /// A server with the usual settings.
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

    /// Whether a tool or prompt of this name is taken.
    pub(crate) fn takes(&self, own: &str) -> bool {
        let fits = |rule: &Pattern| rule.matches(own);
        self.include.as_ref().is_none_or(|rules| rules.iter().any(fits)) && !self.exclude.iter().any(fits)
    }

    /// Whether a resource or template of this URI is taken into the list.
    pub(crate) fn takes_listed(&self, uri: &str) -> bool {
        self.takes_all()
            || ResourceUri::new("", uri).is_some_and(|uri| self.includes(&uri) && !self.excludes(&uri))
    }

    /// Whether the resource of this URI may be read or watched that is not on the list itself, perhaps as one of a template
    /// that was taken. A URI that leads elsewhere by `..` may not: where links are, nobody knows where to.
    pub(crate) fn takes_unlisted(&self, uri: &str, is_of_template: bool) -> bool {
        let is_taken = |uri: &ResourceUri<'_>| {
            (is_of_template || self.includes(uri)) && !self.excludes(uri) && !uri.has_dot_segments()
        };
        self.takes_all() || ResourceUri::new("", uri).as_ref().is_some_and(is_taken)
    }

    fn takes_all(&self) -> bool {
        self.include.is_none() && self.exclude.is_empty()
    }

    fn includes(&self, uri: &ResourceUri<'_>) -> bool {
        self.include.as_ref().is_none_or(|rules| uri.is_within(rules))
    }

    fn excludes(&self, uri: &ResourceUri<'_>) -> bool {
        self.exclude.iter().any(|rule| uri.could_match(rule))
    }

    /// The name under which a tool is shown.
    #[must_use]
    pub fn outward(&self, tool: &str) -> String {
        let own = self.rename.get(tool).map_or(tool, String::as_str);
        outward_name(&format!("{}{own}", self.prefix))
    }

    /// The prefix as it stands before the names that agents see, which is shorter where it leaves no room for them.
    pub(crate) fn outward_prefix(&self) -> String {
        const LONGEST: usize = tool_core::MAX_NAME - 9;
        let mut prefix = match self.prefix.as_str() {
            "" => String::new(),
            prefix => outward_name(prefix),
        };
        prefix.truncate(LONGEST);
        prefix
    }

    /// The names by which a tool may be known that is not shown under them: the one under which the server's list shows it, and
    /// the one that it would have there if it was not renamed.
    pub(crate) fn other_names(&self, tool: &str, shown_as: &str) -> Vec<Arc<str>> {
        let unnamed = outward_name(&format!("{}{tool}", self.prefix));
        let mut names = vec![self.outward(tool), unnamed];
        names.dedup();
        names.retain(|name| name != shown_as);
        names.into_iter().map(Arc::from).collect()
    }

    /// The SHA-256 of the server's target as it is written, with references instead of their values.
    pub(crate) fn target_digest(&self) -> [u8; 32] {
        let mut hasher = HashWriter(Sha256::new());
        write!(hasher, "{:?}", self.target).expect("hashing does not fail");
        hasher.0.finalize().into()
    }

    /// Checks, without waiting, that every reference has a value.
    ///
    /// # Errors
    /// The first one that has none.
    pub fn check(&self, secrets: &dyn Secrets) -> Result<(), SecretError> {
        self.target
            .texts()
            .iter()
            .try_for_each(|text| text.check(secrets))
    }
}

impl ServerTarget {
    /// Every text that may have references.
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

    /// Every reference.
    pub(crate) fn references(&self) -> impl Iterator<Item = &Reference> {
        self.texts().into_iter().flat_map(Template::references)
    }

    /// Where the server is, with every reference's present value.
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
                    if let Some(value) = inherited(name, secrets).await {
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

/// The value of a variable that is set in the environment of the gateway.
async fn inherited(name: &str, secrets: &dyn Secrets) -> Option<Secret> {
    let reference = Reference {
        provider: Provider::Environment,
        name: name.to_owned(),
        fallback: IfUnset::None,
    };
    secrets.get(&reference).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "an environment variable is not handed down");
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

/// Why a server's settings do not say where it is.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ResolveError {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Endpoint(#[from] mcp_client::ClientError),
}

/// Hashes text as it is written, so that it is never held as a whole.
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
        fn what_any_reader_takes_for_a_file_that_is_left_out_is_not_taken(
            choices in prop::collection::vec(any::<u8>(), 100),
        ) {
            let uri = file_spelling("/secret/key.txt", &choices);
            let is_read = |path: Option<String>| path.is_some_and(|path| path.starts_with("/secret/"));
            if file_readers().iter().any(|(_, read)| is_read(read(&uri))) {
                for settings in [settings(None, Some("file:///secret/*")), settings(Some("file:///open/*"), None)] {
                    prop_assert!(!settings.takes_listed(&uri), "{uri:?}");
                    prop_assert!(!settings.takes_unlisted(&uri, false), "{uri:?}");
                }
                prop_assert!(!settings(None, Some("file:///secret/*")).takes_unlisted(&uri, true), "{uri:?}");
            }
        }
    }
}
