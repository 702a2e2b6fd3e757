use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
};

use arc_swap::ArcSwap;
use tokio::sync::watch::Sender;
use tool_chaos::ChaosLayer;
use tool_core::{
    ApprovalListener, Approvals, Clock, Descriptor, Event, Executor, Jitter, Ledger, Observe, Observers,
    OnUpdate, Secrets, SettingLevel, Settings, Source, SourceState, Update,
};
use tool_manifest::{Configuration, Loaded, ProcessSecrets};
use tool_observe::{
    AlertLog, AlertMonitor, AlertSettings, BreakerLog, HealthTracker, SourceLog, SwitchLog, WatchAttemptLayer,
};
use tool_policy::{
    AdmissionLayer, ApprovalDesk, ApprovalLayer, BreakerLayer, ErrorPolicyLayer, MemoryApprovals, QuotaLayer,
    RateLimitLayer, RedactionLayer, Redactor, SharedRules,
};
use tool_registry::{FixedSource, Registry, RegistryParts};
use tool_runtime::{
    CacheCapacity, CacheLayer, ConcurrencyLimitLayer, FallbackLayer, HedgeLayer, IdempotencyLayer,
    LedgerCapacity, LedgerLimits, MemoryLedger, RetryLayer, TokioClock,
};

use crate::{
    BuildError, Toolplane,
    build::executors::{ListCache, LiveParts, Primitives},
    build::policies,
    build::reload::ReloadState,
    build::telemetry::Telemetry,
    calls::reentry::LateToolplane,
    calls::views::Views,
    operate::checks::Checks,
    operate::health::HealthMonitor,
    operate::required::Required,
    outgoing::client::Outbound,
    outgoing::webhooks::Webhooks,
    plane::Inner,
    sections::sections,
    stack::{StackLayers, stack},
};

/// Builder of a [`Toolplane`].
#[derive(Default)]
#[must_use]
pub struct Builder {
    configuration: Configuration,
    extensions: HostExtensions,
    observers: Vec<Arc<dyn Observe>>,
    pub(crate) telemetry: Telemetry,
    secrets: Option<Arc<dyn Secrets>>,
    redactor: Redactor,
    seed: Option<u64>,
    clock: Option<Arc<dyn Clock>>,
    chaos: ChaosLayer,
    ledger: Option<Arc<dyn Ledger>>,
    approvals: Option<Arc<dyn Approvals>>,
    approval_listeners: Vec<Arc<dyn ApprovalListener>>,
    list_cache: ListCache,
}

impl Builder {
    /// Sets tools, servers, limits and policy.
    pub fn configuration(mut self, configuration: Configuration) -> Self {
        self.configuration = configuration;
        self
    }

    /// Sets everything from loaded files: their configuration, and the values of their `${…}` references.
    pub fn loaded(self, loaded: &Loaded) -> Self {
        self.configuration(loaded.configuration.clone())
            .secrets(Arc::new(loaded.secrets()))
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

    /// Adds an observer of all events.
    pub fn observer(mut self, observer: Arc<dyn Observe>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Sets the resolver of `${…}` references. Default: the environment, files and the configuration's `secrets`.
    pub fn secrets(mut self, secrets: Arc<dyn Secrets>) -> Self {
        self.secrets = Some(secrets);
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

    /// Adds a listener for requested and decided approvals.
    pub fn approval_listener(mut self, listener: Arc<dyn ApprovalListener>) -> Self {
        self.approval_listeners.push(listener);
        self
    }

    /// Sets the store that caches the lists of servers between runs, so that they are offered before the servers
    /// start. Default: each run reads the lists from the servers. The store receives lists without known secrets.
    #[cfg(feature = "exec-mcp")]
    pub fn list_cache(mut self, store: Arc<dyn tool_exec_mcp::ListCache>) -> Self {
        self.list_cache.store = Some(store);
        self
    }

    /// Builds the toolplane. Starts nothing.
    ///
    /// # Errors
    /// If two sources have the same name, or a tool has a `pii_handling` that is not supported. A tool that cannot be
    /// used is left out: see [`Toolplane::refused`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn build(self) -> Result<Toolplane, BuildError> {
        let configuration = self.configuration;
        let secrets = self
            .secrets
            .unwrap_or_else(|| Arc::new(ProcessSecrets::of_process(configuration.secrets.clone())));
        let list_cache = self.list_cache.without_secrets(&self.redactor);
        let reload = ReloadState::new(self.extensions, secrets, &self.redactor, list_cache);
        let (parts, live) = reload.parts(&configuration, &LiveParts::default())?;
        let registry = Registry::new(parts);
        registry.follow();
        let clock = self.clock.unwrap_or_else(|| Arc::new(TokioClock::new()));
        let outbound = Arc::new(Outbound::new(reload.secrets()));
        let watch = watch(&configuration, &registry, &outbound, &self.redactor, &clock);
        let mut observers = own_observers(&watch);
        let webhooks = Webhooks::new(outbound, clock.clone());
        webhooks.reconfigure(webhooks.prepare(&configuration)?);
        observers.push(webhooks.of_alerts());
        let (tracer, counter) = self.telemetry.into_parts();
        let others = counter.into_iter().chain(self.observers);
        let observers: Observers = observers.into_iter().chain(others).collect();
        emit_source_changes(&registry, &observers, &self.redactor);
        let rules = SharedRules::new(policies::rules(&configuration));
        let ledger = self.ledger.unwrap_or_else(|| {
            let limits = ledger_limits(&configuration);
            Arc::new(MemoryLedger::new(limits, clock.clone()))
        });
        let approvals = self
            .approvals
            .unwrap_or_else(|| Arc::new(MemoryApprovals::default()));
        let mut listeners = self.approval_listeners;
        listeners.push(webhooks.of_approvals());
        let desk = ApprovalDesk::new(approvals, listeners, clock.clone());
        let reentry = Arc::new(LateToolplane::default());
        let error_policy = ErrorPolicyLayer::new(Arc::new(policies::errors(&configuration)));
        let capacity = configuration.defaults.overrides.get::<CacheCapacity>();
        let CacheCapacity(capacity) = capacity.copied().unwrap_or_default();
        let cache = CacheLayer::new(u64::try_from(capacity).unwrap_or(u64::MAX));
        let (retry, breaker) = with_jitter(self.seed);
        let health = watch.book.clone();
        let layers = StackLayers {
            error_policy: error_policy.clone(),
            watch: tool_observe::WatchLayer::new(observers.clone()).with_tracer(tracer.clone()),
            admission: AdmissionLayer::new(rules.clone()),
            idempotency: IdempotencyLayer::new(ledger.clone()),
            quota: QuotaLayer::new(rules.clone()),
            approval: ApprovalLayer::new(rules.clone(), desk.clone()),
            fallback: FallbackLayer::new(cache.clone())
                .with_reentry(reentry.clone())
                .with_health(health.clone()),
            cache: cache.clone(),
            retry,
            hedge: HedgeLayer::new(health),
            rate_limit: RateLimitLayer::new(),
            concurrency_limit: ConcurrencyLimitLayer::new(),
            breaker,
            watch_attempt: WatchAttemptLayer::new(observers.clone()).with_tracer(tracer),
            redaction: RedactionLayer::new(self.redactor.clone()),
            chaos: self.chaos.clone(),
        };
        let plane = Toolplane::from_inner(Inner {
            cache,
            stack: stack(layers),
            ledger,
            desk,
            registry,
            rules,
            observers,
            views: Views::default(),
            clock,
            callers: ArcSwap::from_pointee(policies::callers(&configuration)),
            live: ArcSwap::from_pointee(live),
            reload,
            watch,
            webhooks,
            error_policy,
            chaos: self.chaos,
            redactor: self.redactor,
        });
        Ok(reentry.open(plane))
    }
}

/// Returns the built-in observers: the health book, and those that write the log.
fn own_observers(watch: &HealthMonitor) -> Vec<Arc<dyn Observe>> {
    vec![
        watch.book.clone(),
        Arc::new(AlertLog),
        Arc::new(SwitchLog),
        Arc::new(BreakerLog),
        Arc::new(SourceLog),
    ]
}

/// Emits an event for every change of state of a source.
fn emit_source_changes(registry: &Registry, observers: &Observers, redactor: &Redactor) {
    let (observers, redactor) = (observers.clone(), redactor.clone());
    registry.on_update(
        &(Arc::new(move |update: &Update| {
            if let Update::State(change) = update {
                let mut change = change.clone();
                for state in [&mut change.from, &mut change.to] {
                    // The output of a program may contain its secrets.
                    if let SourceState::Failed(reason) = state
                        && let Cow::Owned(hidden) = redactor.hide_in_text(reason)
                    {
                        *reason = hidden;
                    }
                }
                observers.emit(&Event::SourceChanged { change: &change });
            }
        }) as OnUpdate),
    );
}

/// Creates the monitor of the health of all tools and servers.
fn watch(
    configuration: &Configuration,
    registry: &Registry,
    outbound: &Arc<Outbound>,
    redactor: &Redactor,
    clock: &Arc<dyn Clock>,
) -> HealthMonitor {
    let book = Arc::new(HealthTracker::new(clock.clone(), configuration.health.window));
    HealthMonitor {
        book: book.clone(),
        monitor: AlertMonitor::new(alert_settings(configuration)),
        checks: Checks {
            registry: registry.clone(),
            book,
            outbound: outbound.clone(),
            redactor: redactor.clone(),
            spec: Sender::new(configuration.health.clone()),
        },
        required: Required::new(configuration, registry.clone()),
    }
}

/// Returns the thresholds of alerts.
pub(crate) fn alert_settings(configuration: &Configuration) -> AlertSettings {
    let alerts = &configuration.alerts;
    let mut settings = AlertSettings::default();
    settings.success_rate = alerts.success_rate;
    settings.mean_latency = alerts.mean_latency;
    settings.min_calls = alerts.min_calls.into();
    settings.cooldown = alerts.cooldown;
    settings
}

/// Tools, executors and sources that the host program adds to a configuration. They stay when the configuration is
/// reloaded.
#[derive(Default)]
pub(crate) struct HostExtensions {
    pub(crate) tools: Vec<Arc<Descriptor>>,
    executors: Vec<Arc<dyn Executor>>,
    sources: Vec<Arc<dyn Source>>,
}

impl HostExtensions {
    /// Returns the parts of the registry: the configuration's tools and executors, then these.
    ///
    /// # Errors
    /// If two sources have the same name.
    pub(crate) fn with(
        &self,
        configuration: &Configuration,
        primitives: Primitives,
    ) -> Result<(RegistryParts, LiveParts), BuildError> {
        let mut executors = primitives.executors;
        executors.extend(self.executors.iter().cloned());
        let tools = configuration.tools.iter().chain(&self.tools).cloned().collect();
        let mut sources: Vec<Arc<dyn Source>> = vec![Arc::new(FixedSource::new("configuration", tools))];
        sources.extend(primitives.sources);
        sources.extend(self.sources.iter().cloned());
        let mut names = HashSet::new();
        let twice = sources
            .iter()
            .find(|source| !names.insert(source.name().to_owned()));
        if let Some(twice) = twice {
            return Err(BuildError::SourceTwice(twice.name().to_owned()));
        }
        let defaults = settings(configuration);
        let parts = RegistryParts::default()
            .with_sources(sources)
            .with_executors(executors)
            .with_upstreams(upstreams(configuration, &defaults))
            .with_defaults(defaults);
        Ok((parts, primitives.live))
    }
}

fn settings(configuration: &Configuration) -> Settings {
    let mut settings = Settings::default();
    settings.call_timeout = configuration.defaults.call_timeout;
    settings.attempt_timeout = configuration.defaults.attempt_timeout;
    settings.max_result_bytes = Some(configuration.defaults.max_result_bytes);
    settings
        .overridden(&sections().always(), SettingLevel::Defaults)
        .overridden(&configuration.defaults.overrides, SettingLevel::Defaults)
}

fn ledger_limits(configuration: &Configuration) -> LedgerLimits {
    let usual = LedgerLimits::default();
    let capacity = configuration.defaults.overrides.get::<LedgerCapacity>();
    let capacity = capacity.copied().unwrap_or_default();
    usual
        .with_max_entries(capacity.max_entries.unwrap_or(usual.max_entries))
        .with_max_bytes(capacity.max_bytes.unwrap_or(usual.max_bytes))
}

/// Returns the settings for the tools of each server, which replace the defaults.
fn upstreams(configuration: &Configuration, defaults: &Settings) -> HashMap<String, Settings> {
    let servers = configuration.servers.iter().map(|server| {
        let settings = defaults
            .clone()
            .overridden(&server.overrides, SettingLevel::Upstream);
        (server.name.clone(), settings)
    });
    servers.collect()
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("n_tools", &self.extensions.tools.len())
            .finish_non_exhaustive()
    }
}

/// Creates the layers with random pauses; with a seed, the pauses are reproducible.
fn with_jitter(seed: Option<u64>) -> (RetryLayer, BreakerLayer) {
    match seed {
        Some(seed) => (
            RetryLayer::with_jitter(Jitter::seeded(seed)),
            BreakerLayer::with_jitter(Jitter::seeded(!seed)),
        ),
        None => (RetryLayer::default(), BreakerLayer::default()),
    }
}
