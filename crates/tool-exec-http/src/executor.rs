use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use raw_json::RawJson;
use serde_json::Value;
use tokio::sync::Mutex as AsyncMutex;
use tool_core::{Descriptor, DynBackend, Executor, PrepareError, Secrets, Settings, Trust, format_duration};

use crate::{
    HttpExecutorOptions, Traffic,
    call::HttpTool,
    client::Clients,
    compile::{Plan, settings_schema},
    redaction::MaskCache,
};

/// Runs tools that are HTTP APIs: the executor of kind `http`.
///
/// Its tools share connections. It never retries, reads no environment and no proxy settings, and connects to public
/// addresses only, unless an operator says otherwise.
///
/// # When a call counts as sent
/// A call is [`Sent`](tool_core::DispatchState::Sent) right before its first byte is written. One that could not be
/// connected (refused, unknown host, refused address, failed TLS handshake, connecting takes too long) stays
/// [`NotSent`](tool_core::DispatchState::NotSent). It is [`Answered`](tool_core::DispatchState::Answered) when the
/// response is complete, or when its head says that it is no success: an answer that is cut off is none.
///
/// # What becomes of a response
/// JSON is relayed as it was written, unless `response_path` or `response.body_mapping` selects from it: a path cuts
/// out text, a mapping parses and writes anew. Text that is a JSON object or array counts as JSON; other text becomes a
/// string, an empty body null, anything else `{"mime_type": …, "data": …}` with the bytes in base64. Secrets that come
/// back and fields named in `redact` are hidden.
///
/// A status that is not expected is an error, with a short part of the body in its message:
///
/// | status | kind | why |
/// |---|---|---|
/// | 401, 407 | `auth` | the upstream does not accept what we showed it: other credentials may help |
/// | 403 | `auth` | it knows who we are, and refuses: other credentials of the same kind do not help |
/// | 408, 421, 425 | `unavailable` | it did not take the request as it came: it may take it again, and is not ill |
/// | 503 | `unavailable` | it does not get to the request now |
/// | 502, 504 | `outcome_unknown`, or `unavailable` for a tool that may run twice | a gateway says so, and the server behind it may be at work |
/// | 429 | `rate_limited` | with the time it asks to wait |
/// | other 4xx | `invalid_arguments` | the same request is refused again: no retry, no sign of an ill upstream |
/// | other 5xx | `upstream_error` | it failed at the request |
/// | any other | `protocol` | nothing that was agreed on, such as a redirect that is not followed |
///
/// # Where a request may go
/// Names are resolved once, and only public addresses among what they resolve to are connected to. `allow_private` in a
/// tool's settings opens loopback and private networks, [`HttpExecutorOptions::allow_private_networks`] whatever it names;
/// link-local and metadata addresses are open only when named there.
pub struct HttpExecutor {
    options: HttpExecutorOptions,
    secrets: Arc<dyn Secrets>,
    clients: Arc<Clients>,
}

impl HttpExecutor {
    /// Makes the executor. Clients are made when they are first used.
    #[must_use]
    pub fn new(options: HttpExecutorOptions, secrets: Arc<dyn Secrets>) -> Self {
        let traffic = Traffic::default();
        Self {
            clients: clients(&options, traffic),
            options,
            secrets,
        }
    }

    /// The same executor, which counts what it has on the network together with another.
    #[must_use]
    pub fn counting(self, traffic: Traffic) -> Self {
        Self {
            clients: clients(&self.options, traffic),
            ..self
        }
    }

    /// What its tools have on the network.
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
        Ok(Arc::new(HttpTool {
            plan: Arc::new(plan),
            flow: self.traffic().flow(self.upstream(descriptor)),
            clients: self.clients.clone(),
            secrets: self.secrets.clone(),
            refused: Mutex::default(),
            renewing: AsyncMutex::default(),
            masks: MaskCache::default(),
        }))
    }

    fn upstream(&self, descriptor: &Descriptor) -> Option<Arc<str>> {
        let config = &descriptor.executor.config;
        let url = config.get("url").or_else(|| config.get("url_template"))?;
        origin(url.as_str()?).map(Into::into)
    }

    /// While they are read.
    fn bounds_results(&self) -> bool {
        true
    }

    fn passes_key(&self, descriptor: &Descriptor) -> bool {
        let is_told = descriptor.executor.config.get("idempotency").is_some();
        is_told && descriptor.origin.trust == Trust::Operator
    }

    /// Limits of time that are longer than an attempt may take: that one always ends first.
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

/// The settings that limit how long something takes.
const TIME_LIMITS: [&str; 3] = ["timeout_ms", "connect_timeout_ms", "read_timeout_ms"];

/// Scheme and host of a URL in which both are written out.
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
