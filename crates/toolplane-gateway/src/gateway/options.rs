use std::{fmt, sync::Arc, time::Duration};

use mcp_server::{Principal, ServerIdentity, StateKey};
use toolplane::{
    core::{Caller, Pattern},
    manifest::GatewayMode,
    observe::Metrics,
};

use crate::{client::CallerResolver, lists::FirstAnswers};

/// Options of a [`Gateway`](crate::Gateway).
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use toolplane::core::Caller;
/// use toolplane_gateway::{GatewayOptions, ServerIdentity};
///
/// let options = GatewayOptions::default()
///     .info(ServerIdentity::new("shop", "1.0.0"))
///     .caller_resolver(|principal| Arc::new(Caller::new(principal.as_str())));
/// assert_eq!(options.info.name, "shop");
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct GatewayOptions {
    /// Identity of the server that clients see: by default `toolplane` in this crate's version.
    pub info: ServerIdentity,
    /// Maximum number of items on one page of a list: 1,000.
    pub page_size: usize,
    /// Time that a list waits for a server whose list is unknown, counted from the server's first start: 4 s.
    pub list_wait: Duration,
    /// Maps principals to callers. By default a caller has the permissions that the configuration gives to the principal
    /// of that name, and a caller that the toolplane has authenticated is used as it is.
    pub caller_resolver: Option<CallerResolver>,
    /// Metrics that receive the gateway's own gauges. To count calls, the toolplane must have them as an observer as well.
    pub metrics: Option<Arc<Metrics>>,
    /// Tools that clients are listed: by default all.
    pub mode: GatewayMode,
    /// `true` if callers who may make tools are offered `execute`, one meta-tool for everything.
    pub execute: bool,
    /// Tools that are listed in each mode: none by default.
    pub pinned: Vec<Pattern>,
    /// `true` if [`Gateway::serve_http`](crate::Gateway::serve_http) serves the metrics at `/metrics`: by default `false`.
    pub serves_metrics: bool,
    /// Key that seals the states which clients give back. Gateways with one key continue the calls of each other, also after
    /// a restart. By default each gateway makes a key of its own.
    pub state_key: Option<StateKey>,
    /// URL at which others reach [`Gateway::serve_http`](crate::Gateway::serve_http), such as `https://tools.example.com`.
    /// Callbacks of HTTP tools are received below it: by default none are.
    pub public_url: Option<String>,
    /// Answers of an earlier run, which clients receive until the lists of an earlier run are known: see
    /// [`Toolplane::recall`](toolplane::Toolplane::recall). A client that got other tools than it would get then is notified.
    pub first_answers: Option<FirstAnswers>,
}

impl GatewayOptions {
    /// Sets [`info`](Self#structfield.info), the identity that clients see.
    #[must_use]
    pub fn info(mut self, info: ServerIdentity) -> Self {
        self.info = info;
        self
    }

    /// Sets [`page_size`](Self#structfield.page_size).
    #[must_use]
    pub fn page_size(mut self, page_size: usize) -> Self {
        self.page_size = page_size;
        self
    }

    /// Sets [`list_wait`](Self#structfield.list_wait).
    #[must_use]
    pub fn list_wait(mut self, list_wait: Duration) -> Self {
        self.list_wait = list_wait;
        self
    }

    /// Sets [`caller_resolver`](Self#structfield.caller_resolver), which maps principals to callers.
    #[must_use]
    pub fn caller_resolver(
        mut self,
        resolve: impl Fn(&Principal) -> Arc<Caller> + Send + Sync + 'static,
    ) -> Self {
        self.caller_resolver = Some(Arc::new(resolve));
        self
    }

    /// Sets [`metrics`](Self#structfield.metrics).
    #[must_use]
    pub fn metrics(mut self, metrics: Arc<Metrics>) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// Sets [`mode`](Self#structfield.mode): whether all tools are listed, or meta-tools with which clients find them.
    ///
    /// The meta-tools are `tool_search`, `tool_describe` and `tool_call`. A tool of another source with such a name is hidden by
    /// it; it can still be called with `tool_call`.
    #[must_use]
    pub fn mode(mut self, mode: GatewayMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets [`execute`](Self#structfield.execute): whether callers who may make tools are offered one meta-tool for everything.
    #[must_use]
    pub fn execute(mut self, execute: bool) -> Self {
        self.execute = execute;
        self
    }

    /// Sets [`pinned`](Self#structfield.pinned), the tools that are listed in each mode.
    #[must_use]
    pub fn pinned(mut self, pinned: impl IntoIterator<Item = Pattern>) -> Self {
        self.pinned = pinned.into_iter().collect();
        self
    }

    /// Sets [`serves_metrics`](Self#structfield.serves_metrics).
    #[must_use]
    pub fn serves_metrics(mut self, serves_metrics: bool) -> Self {
        self.serves_metrics = serves_metrics;
        self
    }

    /// Sets [`state_key`](Self#structfield.state_key).
    #[must_use]
    pub fn state_key(mut self, key: StateKey) -> Self {
        self.state_key = Some(key);
        self
    }

    /// Sets [`public_url`](Self#structfield.public_url).
    #[must_use]
    pub fn public_url(mut self, url: impl Into<String>) -> Self {
        self.public_url = Some(url.into());
        self
    }

    /// Sets [`first_answers`](Self#structfield.first_answers).
    #[must_use]
    pub fn first_answers(mut self, answers: FirstAnswers) -> Self {
        self.first_answers = Some(answers);
        self
    }
}

impl Default for GatewayOptions {
    fn default() -> Self {
        Self {
            info: ServerIdentity::new("toolplane", env!("CARGO_PKG_VERSION")),
            page_size: 1000,
            list_wait: Duration::from_secs(4),
            caller_resolver: None,
            metrics: None,
            mode: GatewayMode::default(),
            execute: false,
            pinned: Vec::new(),
            serves_metrics: false,
            state_key: None,
            public_url: None,
            first_answers: None,
        }
    }
}

impl fmt::Debug for GatewayOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayOptions")
            .field("info", &self.info)
            .field("page_size", &self.page_size)
            .field("list_wait", &self.list_wait)
            .field("caller_resolver", &self.caller_resolver.is_some())
            .field("metrics", &self.metrics)
            .field("mode", &self.mode)
            .field("pinned", &self.pinned)
            .field("serves_metrics", &self.serves_metrics)
            .field("state_key", &self.state_key)
            .field("public_url", &self.public_url)
            .field("first_answers", &self.first_answers.is_some())
            .finish()
    }
}
