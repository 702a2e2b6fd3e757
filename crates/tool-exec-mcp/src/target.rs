//! The way to reach a server, with references that are resolved when it is started.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use mcp_client::{Command, Endpoint, HttpEndpoint, Spawner};
use tool_core::{Provider, Reference, Secret, SecretError, Secrets, Template};

use crate::{ServerSandbox, env_file, sandbox::SandboxState};

/// Variables that programs need to reach the network through a private certificate authority or a proxy. They hold
/// paths, switches and addresses of proxies, and no credentials except in the URL of a proxy.
///
/// Programs read `HTTP_PROXY` and its kin in either case, and npm reads its settings in either case.
pub const NETWORK_VARIABLES: &[&str] = &[
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

/// The way to reach a server. References in the texts are resolved when the server is started.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum ServerTarget {
    /// Program that speaks MCP on its standard input and output.
    Stdio(StdioTarget),
    /// Endpoint that listens.
    Http(HttpTarget),
    /// None: the server is never started, for this reason.
    Refused(String),
}

/// Program that speaks MCP on its standard input and output.
///
/// # Examples
/// ```
/// use tool_core::Template;
/// use tool_exec_mcp::StdioTarget;
///
/// let target = StdioTarget::new(Template::parse("github-mcp-server")?)
///     .args([Template::parse("stdio")?])
///     .env("GITHUB_TOKEN", Template::parse("${env:GITHUB_TOKEN}")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StdioTarget {
    /// Program to start.
    pub command: Template,
    /// Arguments of the program.
    pub args: Vec<Template>,
    /// Variables of its environment, in addition to the safe base.
    pub env: BTreeMap<String, Template>,
    /// Names of variables that are copied from the gateway's environment if they are set there, such as
    /// [`NETWORK_VARIABLES`]. A variable in `env` replaces the copy.
    pub inherit: Vec<String>,
    /// Working directory.
    pub cwd: Option<Template>,
    /// Absolute path of a file with more variables, one `NAME=value` a line, in the form of dotenv: values may be quoted, and
    /// `#` begins a comment. A variable in `env` replaces that of the file, which is read at each start.
    pub env_file: Option<Template>,
    /// Sandbox of the program. In one, it gets neither the safe base nor the working directory of the gateway; its working
    /// directory `cwd` is readable.
    pub sandbox: Option<Box<ServerSandbox>>,
}

/// Endpoint of a server over HTTP or WebSocket.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HttpTarget {
    /// URL of the endpoint.
    pub url: Template,
    /// Headers to send with every request.
    pub headers: BTreeMap<String, Template>,
    /// Transport over HTTP.
    pub transport: HttpTransport,
}

/// Transport of MCP over HTTP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
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

impl StdioTarget {
    /// Creates the target of a program without arguments, in the safe base environment.
    #[must_use]
    pub fn new(command: Template) -> Self {
        Self {
            command,
            args: Vec::new(),
            env: BTreeMap::new(),
            inherit: Vec::new(),
            cwd: None,
            env_file: None,
            sandbox: None,
        }
    }

    /// Appends arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = Template>) -> Self {
        self.args.extend(args);
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: Template) -> Self {
        self.env.insert(name.into(), value);
        self
    }

    /// Adds variables to copy from the gateway's environment.
    #[must_use]
    pub fn inherit<I>(mut self, names: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.inherit.extend(names.into_iter().map(Into::into));
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn cwd(mut self, folder: Template) -> Self {
        self.cwd = Some(folder);
        self
    }

    /// Sets the file with more variables.
    #[must_use]
    pub fn env_file(mut self, path: Template) -> Self {
        self.env_file = Some(path);
        self
    }

    /// Sets the sandbox of the program.
    #[must_use]
    pub fn sandbox(mut self, sandbox: ServerSandbox) -> Self {
        self.sandbox = Some(Box::new(sandbox));
        self
    }
}

impl HttpTarget {
    /// Creates the target of a URL, without headers and with the default transport.
    #[must_use]
    pub fn new(url: Template) -> Self {
        Self {
            url,
            headers: BTreeMap::new(),
            transport: HttpTransport::default(),
        }
    }

    /// Sets a header to send with every request.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: Template) -> Self {
        self.headers.insert(name.into(), value);
        self
    }

    /// Sets the transport.
    #[must_use]
    pub fn transport(mut self, transport: HttpTransport) -> Self {
        self.transport = transport;
        self
    }
}

impl From<StdioTarget> for ServerTarget {
    /// Program that is started.
    fn from(target: StdioTarget) -> Self {
        Self::Stdio(target)
    }
}

impl From<HttpTarget> for ServerTarget {
    /// Endpoint that listens.
    fn from(target: HttpTarget) -> Self {
        Self::Http(target)
    }
}

/// Written by hand: digests of targets are made of this text, and outlive a release.
impl fmt::Debug for ServerTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio(StdioTarget {
                command,
                args,
                env,
                inherit,
                cwd,
                env_file,
                sandbox,
            }) => {
                let mut text = f.debug_struct("Stdio");
                text.field("command", command)
                    .field("args", args)
                    .field("env", env)
                    .field("inherit", inherit)
                    .field("cwd", cwd);
                if let Some(path) = env_file {
                    text.field("env_file", path);
                }
                if let Some(sandbox) = sandbox {
                    text.field("sandbox", sandbox);
                }
                text.finish()
            }
            Self::Http(HttpTarget {
                url,
                headers,
                transport,
            }) => f
                .debug_struct("Http")
                .field("url", url)
                .field("headers", headers)
                .field("transport", transport)
                .finish(),
            Self::Refused(reason) => f.debug_tuple("Refused").field(reason).finish(),
        }
    }
}

impl ServerTarget {
    /// Returns every text that may contain references.
    pub(crate) fn texts(&self) -> Vec<&Template> {
        match self {
            Self::Stdio(StdioTarget {
                command,
                args,
                env,
                cwd,
                env_file,
                sandbox,
                ..
            }) => [command]
                .into_iter()
                .chain(args)
                .chain(env.values())
                .chain(cwd)
                .chain(env_file)
                .chain(sandbox.iter().flat_map(|sandbox| sandbox.texts()))
                .collect(),
            Self::Http(HttpTarget { url, headers, .. }) => {
                [url].into_iter().chain(headers.values()).collect()
            }
            Self::Refused(_) => Vec::new(),
        }
    }

    /// Returns every reference.
    pub(crate) fn references(&self) -> impl Iterator<Item = &Reference> {
        self.texts().into_iter().flat_map(Template::references)
    }

    /// Returns the sandbox of the program, if it has one.
    pub(crate) fn sandbox(&self) -> Option<&ServerSandbox> {
        match self {
            Self::Stdio(target) => target.sandbox.as_deref(),
            Self::Http(_) | Self::Refused(_) => None,
        }
    }

    /// Resolves every reference, and returns the endpoint. `sandbox` is the state of [`ServerTarget::sandbox`].
    pub(crate) async fn resolve(
        &self,
        secrets: &dyn Secrets,
        sandbox: Option<&Arc<SandboxState>>,
    ) -> Result<Endpoint, ResolveError> {
        match self {
            Self::Stdio(StdioTarget {
                command,
                args,
                env,
                inherit,
                cwd,
                env_file,
                ..
            }) => {
                let mut resolved = Command::new(command.resolve(secrets).await?.expose());
                if let Some(spawner) = spawner(sandbox, secrets).await? {
                    resolved = resolved.env_clear().spawner(spawner);
                }
                for arg in args {
                    resolved = resolved.args([arg.resolve(secrets).await?.expose()]);
                }
                for name in inherit.iter().filter(|name| !env.contains_key(*name)) {
                    if let Some(value) = inherited_variable(name, secrets).await {
                        resolved = resolved.env(name, value.expose());
                    }
                }
                for (name, value) in read_env_file(env_file.as_ref(), secrets).await? {
                    if !env.contains_key(&name) {
                        secrets.learn_written(&name, &value);
                        resolved = resolved.env(name, value);
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
            Self::Http(HttpTarget {
                url,
                headers,
                transport,
            }) => {
                let is_websocket = *transport == HttpTransport::WebSocket;
                let endpoint = resolve_http(url, headers, is_websocket, secrets).await?;
                Ok(match transport {
                    HttpTransport::Either => Endpoint::Http(endpoint.with_sse_fallback()),
                    HttpTransport::Streamable => Endpoint::Http(endpoint),
                    HttpTransport::Sse => Endpoint::Sse(endpoint),
                    HttpTransport::WebSocket => Endpoint::WebSocket(endpoint),
                })
            }
            Self::Refused(reason) => Err(ResolveError::Refused(reason.clone())),
        }
    }
}

/// Returns the spawner of a sandbox.
async fn spawner(
    sandbox: Option<&Arc<SandboxState>>,
    secrets: &dyn Secrets,
) -> Result<Option<Arc<dyn Spawner>>, ResolveError> {
    let Some(state) = sandbox else { return Ok(None) };
    let mut paths = [Vec::new(), Vec::new()];
    let written = [&state.sandbox().reads, &state.sandbox().writes];
    for (resolved, written) in paths.iter_mut().zip(written) {
        for path in written {
            resolved.push(PathBuf::from(path.resolve(secrets).await?.expose()));
        }
    }
    let [reads, writes] = paths;
    Ok(state.spawner(reads, writes))
}

/// Returns the variables of a file.
async fn read_env_file(
    path: Option<&Template>,
    secrets: &dyn Secrets,
) -> Result<Vec<(String, String)>, SecretError> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let path = path.resolve(secrets).await?;
    let file = Reference::new(Provider::File, path.expose());
    Ok(env_file::parse(file.resolve(secrets).await?.expose()))
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
    #[error("{0}")]
    Refused(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the text that digests are made of: another text would make each server another one.
    #[test]
    fn a_target_is_written_as_it_always_was() {
        let text = |text: &str| Template::parse(text).unwrap();
        let program = StdioTarget::new(text("run")).args([text("a")]).inherit(["PATH"]);
        let endpoint = HttpTarget::new(text("http://a/")).header("Key", text("b"));
        for (target, expected) in [
            (
                ServerTarget::from(program.clone()),
                format!(
                    "Stdio {{ command: {:?}, args: {:?}, env: {{}}, inherit: [\"PATH\"], cwd: None }}",
                    program.command, program.args
                ),
            ),
            (
                ServerTarget::from(endpoint.clone()),
                format!(
                    "Http {{ url: {:?}, headers: {:?}, transport: Either }}",
                    endpoint.url, endpoint.headers
                ),
            ),
        ] {
            assert_eq!(format!("{target:?}"), expected);
        }
    }
}
