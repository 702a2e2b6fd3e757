use std::{fmt, path::PathBuf, sync::Arc};

use tool_chaos::ChaosLayer;
#[cfg(feature = "workflows")]
use tool_core::Flows;
use tool_core::{
    ApprovalListener, Approvals, Authenticate, Clock, DailyUsage, Descriptor, DynInvoke, Embedder, Event,
    Executor, Invoke, Layer, Ledger, Observe, PinMode, Secrets, Source, Tokens, observe_fn,
};
use tool_manifest::{Configuration, LoadOptions, Loaded, Syntax};
use tool_policy::Redactor;
use tool_registry::{Pins, Store};
use tool_search::UsageLog;

use crate::{
    BuildError, Place,
    build::executors::ListCache,
    host::{
        extensions::{HostExtensions, StoreParts},
        layers::PlacedLayers,
        telemetry::Telemetry,
    },
};

/// Builder of a [`Toolplane`](crate::Toolplane).
///
/// # Examples
/// ```
/// use toolplane::{CallRequest, Toolplane, core::Event};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let plane = Toolplane::builder()
///     .yaml("tools: {greet: {description: Greets., executor: {kind: mock, result: {text: hello}}}}")?
///     .on_event(|event| {
///         if let Event::CallFinished { cx, elapsed, .. } = event {
///             println!("{} took {elapsed:?}", cx.tool().name());
///         }
///     })
///     .build()?;
/// plane.call(CallRequest::new("greet")).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
#[must_use]
pub struct Builder {
    pub(crate) configuration: Configuration,
    pub(crate) extensions: HostExtensions,
    pub(crate) layers: PlacedLayers,
    pub(crate) observers: Vec<Arc<dyn Observe>>,
    pub(crate) telemetry: Telemetry,
    /// Secrets of the loaded files.
    pub(crate) loaded_secrets: Option<Arc<dyn Secrets>>,
    /// Secrets of the host program.
    pub(crate) own_secrets: Option<Arc<dyn Secrets>>,
    pub(crate) redactor: Redactor,
    pub(crate) seed: Option<u64>,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) chaos: ChaosLayer,
    pub(crate) ledger: Option<Arc<dyn Ledger>>,
    pub(crate) approvals: Option<Arc<dyn Approvals>>,
    pub(crate) approval_listeners: Vec<Arc<dyn ApprovalListener>>,
    pub(crate) list_cache: ListCache,
    pub(crate) tokens: Option<Arc<dyn Tokens>>,
    pub(crate) authenticator: Option<Arc<dyn Authenticate>>,
    pub(crate) usage_log: Option<Arc<dyn UsageLog>>,
    pub(crate) daily_usage: Option<Arc<dyn DailyUsage>>,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
}

impl Builder {
    /// Sets tools, servers, limits and policy. Replaces an earlier configuration.
    pub fn configuration(mut self, configuration: Configuration) -> Self {
        self.configuration = configuration;
        self
    }

    /// Sets tools, servers, limits and policy from a configuration file.
    ///
    /// # Errors
    /// If the file is not usable: every problem with its line.
    pub fn file(self, path: impl Into<PathBuf>) -> Result<Self, BuildError> {
        self.load(&LoadOptions::new().path(path))
    }

    /// Sets tools, servers, limits and policy from the text of a configuration.
    ///
    /// # Errors
    /// The errors of [`Builder::file`].
    pub fn yaml(self, text: impl Into<String>) -> Result<Self, BuildError> {
        self.load(&LoadOptions::new().text("configuration", Syntax::Yaml, text))
    }

    fn load(self, options: &LoadOptions) -> Result<Self, BuildError> {
        let loaded = crate::manifest::load(options).map_err(BuildError::Configuration)?;
        Ok(self.loaded(&loaded))
    }

    /// Sets everything from loaded files: their configuration, and the values of their `${…}` references.
    pub fn loaded(mut self, loaded: &Loaded) -> Self {
        self.loaded_secrets = Some(Arc::new(loaded.secrets()));
        self.configuration(loaded.configuration.clone())
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: Descriptor) -> Self {
        self.extensions.tools.push(Arc::new(tool));
        self
    }

    /// Adds an executor. It replaces one of the same kind.
    pub fn executor(mut self, executor: Arc<dyn Executor>) -> Self {
        self.extensions.executors.push(executor);
        self
    }

    /// Adds a source of tools.
    pub fn source(mut self, source: Arc<dyn Source>) -> Self {
        self.extensions.sources.push(source);
        self
    }

    /// Sets the store of tools with versions. Its latest versions are offered after the tools of the configuration, which
    /// have precedence, and before those of servers; other versions are called as `tool@version`. Changes of the store are
    /// offered without a reload. [`Toolplane::publisher`](crate::Toolplane::publisher) publishes.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use toolplane::{
    ///     CallRequest, RawJson, Toolplane,
    ///     registry::{MemoryStore, NewVersion, PublishOptions},
    /// };
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let plane = Toolplane::builder().store(Arc::new(MemoryStore::new())).build()?;
    /// let publisher = plane.publisher().expect("there is a store");
    /// for (version, result) in [("1.0.0", "hello"), ("2.0.0", "good day")] {
    ///     let manifest = RawJson::parse(format!(
    ///         r#"{{"apiVersion": "toolplane.dev/v1", "kind": "Tool", "metadata": {{"name": "greet"}},
    ///             "spec": {{"description": "Greets.", "executor": {{"kind": "mock", "result": "{result}"}}}}}}"#,
    ///     ))?;
    ///     let version = NewVersion::new("greet", version.parse()?, manifest);
    ///     publisher.publish(version, "ada", PublishOptions::default()).await?;
    /// }
    /// let first = plane.call(CallRequest::new("greet@1.0.0")).await?.into_reply()?;
    /// assert_eq!(first.text(), "hello");
    /// # Ok(())
    /// # }
    /// ```
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.extensions.store = Some(StoreParts::new(store));
        self
    }

    /// Adds a layer around every call, or around every attempt: see [`Place`]. Several layers at one place are passed in
    /// the order in which they are added, outermost first. They stay when the configuration is reloaded.
    ///
    /// A layer explains its decisions under a name of its own: see [`CallContext::explain`](tool_core::CallContext::explain).
    /// Without layers, a call costs nothing more.
    ///
    /// # Dry runs
    /// A dry run passes the layers at both places, so that it ends as the call would, and shows the request that would be
    /// sent. A layer that counts, stores, asks or sends does not do so where
    /// [`CallContext::is_dry_run`](tool_core::CallContext::is_dry_run) is true. The innermost result of a dry run is
    /// [`Outcome::Pending`](tool_core::Outcome::Pending).
    ///
    /// # Examples
    /// ```
    /// use toolplane::{CallRequest, Place, Toolplane};
    /// use toolplane::core::{CallContext, ErrorKind, Invoke, Outcome, ToolError};
    ///
    /// /// Refuses calls of tools that cost something, outside of working hours.
    /// struct Closed<S> {
    ///     inner: S,
    /// }
    ///
    /// impl<S: Invoke> Invoke for Closed<S> {
    ///     async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
    ///         if cx.tool().descriptor().metadata.cost_per_call.is_some() {
    ///             cx.explain("working hours", || "refused: it costs something".to_owned());
    ///             return Err(ToolError::new(ErrorKind::Denied, "closed"));
    ///         }
    ///         self.inner.invoke(cx).await
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let plane = Toolplane::builder()
    ///     .yaml("tools: {buy: {description: Buys., cost_per_call: 0.5, executor: {kind: mock, result: done}}}")?
    ///     .layer(Place::Call, |inner| Closed { inner })
    ///     .build()?;
    /// let refused = plane.call(CallRequest::new("buy")).await;
    /// assert_eq!(refused.expect_err("closed").kind(), ErrorKind::Denied);
    /// # Ok(())
    /// # }
    /// ```
    pub fn layer<L>(mut self, place: Place, layer: L) -> Self
    where
        L: Layer<Arc<dyn DynInvoke>> + Send + Sync + 'static,
        L::Invoke: Invoke + 'static,
    {
        self.layers.push(place, layer);
        self
    }

    /// Adds an observer of all events.
    pub fn observer(mut self, observer: Arc<dyn Observe>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Adds a closure that observes all events. It runs on the path of every call: it returns at once and never blocks.
    pub fn on_event(self, observe: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.observer(Arc::new(observe_fn(observe)))
    }

    /// Sets the resolver of `${…}` references, also for configurations that are loaded before or later. Default: the
    /// environment, files and the configuration's `secrets`.
    pub fn secrets(mut self, secrets: Arc<dyn Secrets>) -> Self {
        self.own_secrets = Some(secrets);
        self
    }

    /// Injects faults into attempts. Keep a clone of the layer to stop them.
    pub fn chaos(mut self, chaos: ChaosLayer) -> Self {
        self.chaos = chaos;
        self
    }

    /// Seeds all random choices, such as pauses between attempts: for simulations.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the redactor that learns every used secret. A program can then hide them elsewhere as well, such as in
    /// its logs.
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// Sets the clock. Default: the clock of tokio.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Sets the ledger of calls with an idempotency key. Default: in memory.
    pub fn ledger(mut self, ledger: Arc<dyn Ledger>) -> Self {
        self.ledger = Some(ledger);
        self
    }

    /// Sets the storage of approvals. Default: in memory.
    pub fn approvals(mut self, approvals: Arc<dyn Approvals>) -> Self {
        self.approvals = Some(approvals);
        self
    }

    /// Sets the storage of workflows that wait or run. Default: in memory, where a restart forgets them.
    #[cfg(feature = "workflows")]
    pub fn flows(mut self, flows: Arc<dyn Flows>) -> Self {
        self.extensions.flows.flows = Some(flows);
        self
    }

    /// Sets the store of tokens that authenticate callers if the configuration has `gateway.auth: tokens`. Without a
    /// store, such a configuration refuses everybody: see [`Toolplane::authenticate`](crate::Toolplane::authenticate).
    pub fn tokens(mut self, tokens: Arc<dyn Tokens>) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Sets an authenticator of callers, instead of that of the configuration's `gateway.auth`. Surfaces then refuse
    /// callers that it does not authenticate.
    pub fn authenticator(mut self, authenticator: Arc<dyn Authenticate>) -> Self {
        self.authenticator = Some(authenticator);
        self
    }

    /// Adds a listener for requested and decided approvals.
    pub fn approval_listener(mut self, listener: Arc<dyn ApprovalListener>) -> Self {
        self.approval_listeners.push(listener);
        self
    }

    /// Sets the storage of accepted definitions. Default: in memory, so that a definition is accepted by its first use in each
    /// run. A definition that has changed since it was accepted is withheld until [`Toolplane::accept`](crate::Toolplane::accept).
    pub fn pins(mut self, pins: Arc<dyn Pins>) -> Self {
        self.extensions.pins.store = pins;
        self
    }

    /// Pins all sources in this mode, those of the configuration's own tools included, instead of the configuration's modes.
    /// Servers with `pin: off` stay as they are.
    pub fn pin_mode(mut self, mode: PinMode) -> Self {
        self.extensions.pins.mode = Some(mode);
        self
    }

    /// Sets the log of queries that led to successful calls, by which a [search](crate::Toolplane::search) prefers tools.
    /// Default: in memory.
    pub fn usage_log(mut self, usage_log: Arc<dyn UsageLog>) -> Self {
        self.usage_log = Some(usage_log);
        self
    }

    /// Sets the storage of usage: figures of calls for each day, tool and principal. They are written a second after a call, and the
    /// last ones by [`Toolplane::shutdown`](crate::Toolplane::shutdown). Default: nothing is recorded.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use toolplane::{
    ///     CallRequest, Toolplane,
    ///     core::{DailyUsage, UtcDay},
    ///     observe::MemoryUsage,
    /// };
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let usage = MemoryUsage::default();
    /// let plane = Toolplane::builder()
    ///     .yaml("tools: {greet: {description: Greets., executor: {kind: mock, result: hello}}}")?
    ///     .daily_usage(Arc::new(usage.clone()))
    ///     .build()?;
    /// plane.call(CallRequest::new("greet")).await?;
    /// plane.shutdown().await;
    /// let today = UtcDay::of(std::time::SystemTime::now());
    /// let figures = usage.read(today.days_before(1)..=today).await?;
    /// assert_eq!((&*figures[0].0.tool, figures[0].1.n_calls), ("greet", 1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn daily_usage(mut self, usage: Arc<dyn DailyUsage>) -> Self {
        self.daily_usage = Some(usage);
        self
    }

    /// Sets the embedder, with which a [search](crate::Toolplane::search) compares meanings in addition to words, and a tool with
    /// [`SemanticCacheSettings`](crate::runtime::SemanticCacheSettings) its calls. The tools are embedded in the background, at the
    /// first search and when they change. It precedes that of a configuration. Default: none.
    pub fn embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.embedder = Some(embedder);
        self
    }

    /// Sets the store that caches the lists of servers between runs, so that they are offered before the servers
    /// start. Default: each run reads the lists from the servers. The store receives lists without known secrets.
    #[cfg(feature = "exec-mcp")]
    pub fn list_cache(mut self, store: Arc<dyn tool_exec_mcp::ListCache>) -> Self {
        self.list_cache.store = Some(store);
        self
    }

    /// Begins to load the [cached lists](Self::list_cache) while the toolplane is built, for a program that offers all of them
    /// next. Default: they are loaded when the first list is made, or by [`recall`](crate::Toolplane::recall). Changes nothing
    /// outside of a runtime.
    #[cfg(feature = "exec-mcp")]
    pub fn recall_while_building(mut self) -> Self {
        self.list_cache.is_loaded_early = true;
        self
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("n_tools", &self.extensions.tools.len())
            .finish_non_exhaustive()
    }
}
