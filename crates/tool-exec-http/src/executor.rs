use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use raw_json::RawJson;
use serde_json::Value;
use tokio::sync::Mutex as AsyncMutex;
use tool_core::{
    Descriptor, DynBackend, Executor, NoSecrets, PrepareError, Reach, SecretUse, Secrets, Settings,
    TaskSupport, UpstreamState, format_duration,
};

use crate::{
    HttpExecutorOptions, Operations, Traffic,
    call::HttpBackend,
    client::Clients,
    compile::{Plan, settings_schema},
    redaction::MaskCache,
};

/// Executor of kind `http`: runs tools that are HTTP APIs.
///
/// Its tools share connections. It never retries, ignores environment variables and proxy settings, and connects to public
/// addresses only, unless an operator allows others.
///
/// # When a call counts as sent
/// A call is [`Sent`](tool_core::DispatchState::Sent) right before its first byte is written. It stays
/// [`NotSent`](tool_core::DispatchState::NotSent) if no connection could be made: connection refused, unknown host, address
/// not allowed, failed TLS handshake, connect timeout. It is [`Answered`](tool_core::DispatchState::Answered) when the
/// response is complete, or when its head has an unexpected status. A truncated response is not an answer,
/// and neither is one after which the API goes on to work (`async`): the call is answered when the work has ended.
///
/// # Results
/// JSON is relayed with its original bytes, unless `response_path` or `response.body_mapping` selects from it. A path (RFC
/// 9535) copies parts of the text; a mapping (JMESPath) parses and serializes again. Text that is a JSON object or array
/// counts as JSON. Other text becomes a string, an empty body null, and any other body `{"mime_type": …, "data": …}` with
/// the bytes in base64. Secrets that the upstream echoes and fields named in `redact` are hidden.
///
/// # Errors by status
/// An unexpected status is an error, with a short excerpt of the body in its message:
///
/// | status | kind | reason |
/// |---|---|---|
/// | 401, 407 | `auth` | the upstream does not accept the credentials: others may help |
/// | 403 | `auth` | the upstream knows the caller and refuses: other credentials of the same kind do not help |
/// | 408, 421, 425 | `unavailable` | the upstream did not process the request; it may accept a repetition, and is healthy |
/// | 503 | `unavailable` | the upstream cannot process the request now |
/// | 502, 504 | `outcome_unknown`, or `unavailable` for a tool that may run twice | a gateway answers, and the server behind it may have processed the request |
/// | 429 | `rate_limited` | includes the time to wait that the upstream asks for |
/// | other 4xx | `invalid_arguments` | the upstream would refuse the same request again: no retry, and no sign of an unhealthy upstream |
/// | other 5xx | `upstream_error` | the upstream failed to process the request |
/// | any other | `protocol` | an unexpected status, such as a redirect that is not followed |
///
/// # Allowed addresses
/// A host name is resolved once, and only its public addresses are connected to, which prevents SSRF and DNS rebinding. The
/// IANA special-purpose address registries (RFC 6890) define the addresses that are not public. `allow_private` in a tool's
/// settings allows loopback and private networks. [`HttpExecutorOptions::allow_private_networks`] allows everything that it
/// names; link-local and metadata addresses are allowed only by name.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use tool_core::Secrets;
/// use tool_exec_http::{HttpExecutor, HttpExecutorOptions};
///
/// /// An executor whose tools use secrets, and may reach one network besides the public ones.
/// fn executor(secrets: Arc<dyn Secrets>) -> Result<HttpExecutor, tool_exec_http::NetworkError> {
///     let options = HttpExecutorOptions::default().with_allow_private_networks(["10.1.0.0/16".parse()?]);
///     Ok(HttpExecutor::new(options, secrets))
/// }
/// ```
///
/// [`HttpExecutor::default`] has no secrets and reaches public addresses only.
pub struct HttpExecutor {
    options: HttpExecutorOptions,
    secrets: Arc<dyn Secrets>,
    clients: Arc<Clients>,
    operations: Operations,
    /// States of the upstreams of tools that no registry resolves.
    upstreams: Mutex<HashMap<Arc<str>, Arc<UpstreamState>>>,
}

/// Executor with the default options and without secrets: `${secret:…}` and `${NAME}` have no value.
impl Default for HttpExecutor {
    fn default() -> Self {
        Self::new(HttpExecutorOptions::default(), Arc::new(NoSecrets))
    }
}

impl HttpExecutor {
    /// Creates the executor. HTTP clients are created on first use.
    #[must_use]
    pub fn new(options: HttpExecutorOptions, secrets: Arc<dyn Secrets>) -> Self {
        let traffic = Traffic::default();
        Self {
            clients: clients(&options, traffic),
            options,
            secrets,
            operations: Operations::default(),
            upstreams: Mutex::default(),
        }
    }

    /// Shares the counters of connections and requests with another executor.
    #[must_use]
    pub fn with_traffic(self, traffic: Traffic) -> Self {
        Self {
            clients: clients(&self.options, traffic),
            ..self
        }
    }

    /// Shares long-running operations with another executor: calls of its tools go on with those of the other one.
    #[must_use]
    pub fn with_operations(self, operations: Operations) -> Self {
        Self { operations, ..self }
    }

    /// Returns the long-running operations of its tools.
    #[must_use]
    pub fn operations(&self) -> &Operations {
        &self.operations
    }

    /// Returns the state that tools of this upstream share.
    pub(crate) fn upstream_state(&self, name: Arc<str>) -> Arc<UpstreamState> {
        let mut upstreams = self.upstreams.lock();
        let known = upstreams.entry(Arc::clone(&name));
        known
            .or_insert_with(|| Arc::new(UpstreamState::new(name)))
            .clone()
    }

    /// Returns the counters of connections and requests of its tools.
    #[must_use]
    pub fn traffic(&self) -> &Traffic {
        &self.clients.traffic
    }
}

fn clients(options: &HttpExecutorOptions, traffic: Traffic) -> Arc<Clients> {
    let resolver = options.resolver.clone();
    Arc::new(Clients::new(&options.allow_private_networks, resolver, traffic))
}

impl Executor for HttpExecutor {
    fn kind(&self) -> &str {
        "http"
    }

    fn prepare(&self, descriptor: &Descriptor) -> Result<Arc<dyn DynBackend>, Vec<PrepareError>> {
        let plan = Plan::compile(descriptor, &self.options, &*self.secrets).map_err(|problems| problems.0)?;
        Ok(Arc::new_cyclic(|this| HttpBackend {
            plan: Arc::new(plan),
            traffic: self.traffic().for_upstream(self.upstream(descriptor)),
            clients: self.clients.clone(),
            secrets: self.secrets.clone(),
            refused: Mutex::default(),
            refreshing: AsyncMutex::default(),
            masks: MaskCache::default(),
            operations: self.operations.clone(),
            this: this.clone(),
        }))
    }

    fn reach(&self, descriptor: &Descriptor) -> Reach {
        let config = &descriptor.executor.config;
        let upstream = self.upstream(descriptor);
        let destination = upstream.as_deref().unwrap_or("any host");
        let mut secrets = SecretUse::find(config, "", destination);
        // `Header=NAME`, `Header: NAME` or a bare name of a variable.
        let bare = config["headers_from_env"].as_array().into_iter().flatten();
        for (index, entry) in bare.enumerate() {
            let name = entry
                .as_str()
                .and_then(|entry| entry.rsplit(['=', ':', ' ']).next());
            let at = format!("/headers_from_env/{index}");
            secrets.extend(name.map(|name| SecretUse::new(format!("${{{name}}}"), at, destination)));
        }
        let host = upstream.as_deref().and_then(|origin| origin.split_once("://"));
        let method = config["method"].as_str().unwrap_or("GET, or POST with a body");
        Reach::new(secrets)
            .with_hosts(host.map(|(_, host)| host.to_owned()))
            .with_any_host(host.is_none())
            .with_other(format!("the method {method}"))
    }

    fn upstream(&self, descriptor: &Descriptor) -> Option<Arc<str>> {
        let config = &descriptor.executor.config;
        let url = config.get("url").or_else(|| config.get("url_template"))?;
        origin(url.as_str()?).map(Into::into)
    }

    /// Returns `true`: results are limited while they are read.
    fn bounds_results(&self) -> bool {
        true
    }

    fn passes_key(&self, descriptor: &Descriptor) -> bool {
        let has_header = descriptor.executor.config.get("idempotency").is_some();
        has_header && descriptor.origin.declarations_count()
    }

    /// A tool whose API may go on to work after its answer makes a task of that work. A call that reports its answer while it
    /// arrives may run in the background.
    fn task_support(&self, descriptor: &Descriptor) -> TaskSupport {
        let config = &descriptor.executor.config;
        if config.get("async").is_some() {
            TaskSupport::Own
        } else if config.get("stream").is_some() {
            TaskSupport::Background
        } else {
            TaskSupport::None
        }
    }

    /// Warns about timeouts that exceed the timeout of an attempt or a call, which always ends first.
    fn warnings(&self, descriptor: &Descriptor, settings: &Settings) -> Vec<PrepareError> {
        let limits = [
            (
                settings.attempt_timeout,
                "an attempt",
                "raise the tool's own `timeout_ms`, or `attempt_timeout` in `defaults`",
            ),
            (
                settings.call_timeout,
                "a call",
                "raise `call_timeout` of the tool, or in `defaults`",
            ),
        ];
        let [attempt, call] = limits;
        let (limit, what, advice) = if call.0 < attempt.0 { call } else { attempt };
        let name = &descriptor.name;
        let longer = TIME_LIMITS.into_iter().filter_map(|key| {
            let value = descriptor.executor.config.get(key).and_then(Value::as_u64)?;
            let value = Duration::from_millis(value);
            (value > limit).then(|| {
                let message = format!(
                    "`{key}` is {}, but {what} of `{name}` is over after {}: it never has an effect",
                    value.as_millis(),
                    format_duration(limit)
                );
                PrepareError::at(format!("/{key}"), message).with_hint(format!("{advice}, or shorten this"))
            })
        });
        longer.collect()
    }

    fn config_schema(&self) -> RawJson {
        settings_schema()
    }
}

/// Settings that are timeouts.
const TIME_LIMITS: [&str; 3] = ["timeout_ms", "connect_timeout_ms", "read_timeout_ms"];

/// Returns scheme and host of a URL, or `None` if one of them contains a reference or an argument.
fn origin(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let is_plain = !host.is_empty() && !host.contains(['{', '$']) && !scheme.contains(['{', '$']);
    is_plain.then(|| format!("{scheme}://{host}").to_ascii_lowercase())
}

impl fmt::Debug for HttpExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpExecutor")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
