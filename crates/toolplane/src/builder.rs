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
    ApprovalNews, Approvals, Clock, Descriptor, Event, Executor, Jitter, Ledger, Observe, Observers,
    OnUpdate, Secrets, SettingLevel, Settings, Source, SourceState, Update,
};
use tool_manifest::{Configuration, Loaded, ProcessSecrets};
use tool_observe::{
    AlertLog, AlertMonitor, AlertSettings, BreakerLog, HealthBook, SourceLog, SwitchLog, WatchAttemptLayer,
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
    checks::Checks,
    executors::{KeptIn, Primitives, Running},
    gate::OwnGate,
    health::HealthMonitor,
    hooks::Hooks,
    outbound::Outbound,
    plane::Inner,
    policies,
    reload::Reloading,
    required::Required,
    sections::sections,
    stack::{StackLayers, stack},
    telemetry::Telemetry,
    views::Views,
};

/// Puts a [`Toolplane`] together.
#[derive(Default)]
#[must_use]
pub struct Builder {
    configuration: Configuration,
    own: Own,
    observers: Vec<Arc<dyn Observe>>,
    pub(crate) telemetry: Telemetry,
    secrets: Option<Arc<dyn Secrets>>,
    redactor: Redactor,
    seed: Option<u64>,
    clock: Option<Arc<dyn Clock>>,
    chaos: ChaosLayer,
    ledger: Option<Arc<dyn Ledger>>,
    approvals: Option<Arc<dyn Approvals>>,
    approval_news: Vec<Arc<dyn ApprovalNews>>,
    kept_in: KeptIn,
}

impl Builder {
    /// Takes tools, servers, limits and policy from this.
    pub fn configuration(mut self, configuration: Configuration) -> Self {
        self.configuration = configuration;
        self
    }

    /// Takes everything from files that were loaded: their configuration, and the values of their `${…}`
    /// references.
    pub fn loaded(self, loaded: &Loaded) -> Self {
        self.configuration(loaded.configuration.clone())
            .secrets(Arc::new(loaded.secrets()))
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: Descriptor) -> Self {
        self.own.tools.push(Arc::new(tool));
        self
    }

    /// Adds a primitive. One of a kind that there is already takes its place.
    pub fn executor(mut self, executor: Arc<dyn Executor>) -> Self {
        self.own.executors.push(executor);
        self
    }

    /// Adds a source of tools.
    pub fn source(mut self, source: Arc<dyn Source>) -> Self {
        self.own.sources.push(source);
        self
    }

    /// Tells this of every call.
    pub fn observer(mut self, observer: Arc<dyn Observe>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Takes the values of `${…}` references from this: without it, from the environment, from files and from the
    /// configuration's `secrets`.
    pub fn secrets(mut self, secrets: Arc<dyn Secrets>) -> Self {
        self.secrets = Some(secrets);
        self
    }

    /// Has attempts fail on purpose by this chaos, which whoever keeps a clone can stop.
    pub fn chaos(mut self, chaos: ChaosLayer) -> Self {
        self.chaos = chaos;
        self
    }

    /// Has everything that is left to chance, such as pauses between attempts, come out the same every time: for
    /// simulations.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Has this know every secret that is used, so that the program can hide them elsewhere as well, such as in its logs.
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// Takes the time from this: without it, from tokio.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Remembers in this what came of calls with an idempotency key: without it, in memory.
    pub fn ledger(mut self, ledger: Arc<dyn Ledger>) -> Self {
        self.ledger = Some(ledger);
        self
    }

    /// Keeps approvals here: without it, in memory.
    pub fn approvals(mut self, approvals: Arc<dyn Approvals>) -> Self {
        self.approvals = Some(approvals);
        self
    }

    /// Tells this of every approval that is asked for or decided.
    pub fn approval_news(mut self, news: Arc<dyn ApprovalNews>) -> Self {
        self.approval_news.push(news);
        self
    }

    /// Keeps the lists of servers in this store between runs, so that they are offered before the servers run; without it,
    /// they are read from the servers in each run. The store receives lists without known secrets.
    #[cfg(feature = "exec-mcp")]
    pub fn list_store(mut self, store: Arc<dyn tool_exec_mcp::ListStore>) -> Self {
        self.kept_in.store = Some(store);
        self
    }

    /// Puts it together. Nothing is started.
    ///
    /// # Errors
    /// When two sources have the same name, or a tool asks for a `pii_handling` that nothing does. A tool that cannot be used is left out: see [`Toolplane::refused`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn build(self) -> Result<Toolplane, BuildError> {
        let configuration = self.configuration;
        let secrets = self
            .secrets
            .unwrap_or_else(|| Arc::new(ProcessSecrets::of_process(configuration.secrets.clone())));
        let kept_in = self.kept_in.without_secrets(&self.redactor);
        let reloading = Reloading::new(self.own, secrets, &self.redactor, kept_in);
        let (parts, running) = reloading.parts(&configuration, &Running::default())?;
        let registry = Registry::new(parts);
        registry.follow();
        let clock = self.clock.unwrap_or_else(|| Arc::new(TokioClock::new()));
        let outbound = Arc::new(Outbound::new(reloading.secrets()));
        let watch = watch(&configuration, &registry, &outbound, &self.redactor, &clock);
        let mut observers = own_observers(&watch);
        let hooks = Hooks::new(outbound, clock.clone());
        hooks.adopt(hooks.of(&configuration)?);
        observers.push(hooks.of_alerts());
        let (tracer, counter) = self.telemetry.into_parts();
        let others = counter.into_iter().chain(self.observers);
        let observers: Observers = observers.into_iter().chain(others).collect();
        tell_of_sources(&registry, &observers, &self.redactor);
        let rules = SharedRules::new(policies::rules(&configuration));
        let ledger = self.ledger.unwrap_or_else(|| {
            let limits = ledger_limits(&configuration);
            Arc::new(MemoryLedger::new(limits, clock.clone()))
        });
        let approvals = self
            .approvals
            .unwrap_or_else(|| Arc::new(MemoryApprovals::default()));
        let mut news = self.approval_news;
        news.push(hooks.of_approvals());
        let desk = ApprovalDesk::new(approvals, news, clock.clone());
        let gate = Arc::new(OwnGate::default());
        let surface = ErrorPolicyLayer::new(Arc::new(policies::errors(&configuration)));
        let capacity = configuration.defaults.overrides.get::<CacheCapacity>();
        let CacheCapacity(capacity) = capacity.copied().unwrap_or_default();
        let cache = CacheLayer::new(u64::try_from(capacity).unwrap_or(u64::MAX));
        let (retry, breaker) = with_jitter(self.seed);
        let health = watch.book.clone();
        let layers = StackLayers {
            surface: surface.clone(),
            watch: tool_observe::WatchLayer::new(observers.clone()).tracer(tracer.clone()),
            admit: AdmissionLayer::new(rules.clone()),
            idempotency: IdempotencyLayer::new(ledger.clone()),
            allowance: QuotaLayer::new(rules.clone()),
            approve: ApprovalLayer::new(rules.clone(), desk.clone()),
            degrade: FallbackLayer::new(cache.clone())
                .gate(gate.clone())
                .health(health.clone()),
            share: cache.clone(),
            retry,
            hedge: HedgeLayer::new(health),
            rate_limit: RateLimitLayer::new(),
            concurrency: ConcurrencyLimitLayer::new(),
            breaker,
            watch_attempt: WatchAttemptLayer::new(observers.clone()).tracer(tracer),
            redact: RedactionLayer::new(self.redactor.clone()),
            chaos: self.chaos.clone(),
        };
        let plane = Toolplane::from_inner(Inner {
            share: cache,
            stack: stack(layers),
            ledger,
            desk,
            registry,
            rules,
            observers,
            views: Views::default(),
            clock,
            callers: ArcSwap::from_pointee(policies::callers(&configuration)),
            running: ArcSwap::from_pointee(running),
            reloading,
            watch,
            hooks,
            surface,
            chaos: self.chaos,
            redactor: self.redactor,
        });
        Ok(gate.open(plane))
    }
}

/// The observers that there always are: the book of health, and those that write the log.
fn own_observers(watch: &HealthMonitor) -> Vec<Arc<dyn Observe>> {
    vec![
        watch.book.clone(),
        Arc::new(AlertLog),
        Arc::new(SwitchLog),
        Arc::new(BreakerLog),
        Arc::new(SourceLog),
    ]
}

/// Has observers told of every state that a source comes into.
fn tell_of_sources(registry: &Registry, observers: &Observers, redactor: &Redactor) {
    let (observers, redactor) = (observers.clone(), redactor.clone());
    registry.on_update(
        &(Arc::new(move |update: &Update| {
            if let Update::State(change) = update {
                let mut change = change.clone();
                for state in [&mut change.from, &mut change.to] {
                    // What a program wrote may hold what it was given.
                    if let SourceState::Failed(reason) = state
                        && let Cow::Owned(hidden) = redactor.text(reason)
                    {
                        *reason = hidden;
                    }
                }
                observers.tell(&Event::SourceChanged { change: &change });
            }
        }) as OnUpdate),
    );
}

/// What watches over the health of all tools and servers.
fn watch(
    configuration: &Configuration,
    registry: &Registry,
    outbound: &Arc<Outbound>,
    redactor: &Redactor,
    clock: &Arc<dyn Clock>,
) -> HealthMonitor {
    let book = Arc::new(HealthBook::new(clock.clone(), configuration.health.window));
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

/// When operators are told that something is not well.
pub(crate) fn alert_settings(configuration: &Configuration) -> AlertSettings {
    let alerts = &configuration.alerts;
    let mut settings = AlertSettings::default();
    settings.success_rate = alerts.success_rate;
    settings.mean_latency = alerts.mean_latency;
    settings.min_calls = alerts.min_calls.into();
    settings.cooldown = alerts.cooldown;
    settings
}

/// What a program adds to a configuration: it stays when the configuration is loaded again.
#[derive(Default)]
pub(crate) struct Own {
    pub(crate) tools: Vec<Arc<Descriptor>>,
    executors: Vec<Arc<dyn Executor>>,
    sources: Vec<Arc<dyn Source>>,
}

impl Own {
    /// What the registry goes by: the configuration's tools and primitives, and then these.
    ///
    /// # Errors
    /// When two sources have the same name.
    pub(crate) fn with(
        &self,
        configuration: &Configuration,
        primitives: Primitives,
    ) -> Result<(RegistryParts, Running), BuildError> {
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
        let parts = RegistryParts {
            sources,
            executors,
            upstreams: upstreams(configuration, &defaults),
            defaults,
        };
        Ok((parts, primitives.running))
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
    LedgerLimits {
        max_entries: capacity.max_entries.unwrap_or(usual.max_entries),
        max_bytes: capacity.max_bytes.unwrap_or(usual.max_bytes),
    }
}

/// What holds for the tools of each server in the place of the defaults.
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
            .field("n_tools", &self.own.tools.len())
            .finish_non_exhaustive()
    }
}

/// Layers whose pauses are random, or the same every time with a seed.
fn with_jitter(seed: Option<u64>) -> (RetryLayer, BreakerLayer) {
    match seed {
        Some(seed) => (
            RetryLayer::with_jitter(Jitter::seeded(seed)),
            BreakerLayer::with_jitter(Jitter::seeded(!seed)),
        ),
        None => (RetryLayer::default(), BreakerLayer::default()),
    }
}
