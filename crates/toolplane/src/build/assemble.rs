//! The parts of a toolplane, put together.

use std::{mem, sync::Arc};

use arc_swap::ArcSwap;
use tool_core::{
    ApprovalListener, Approvals, Clock, DailyUsage, Embedder, Jitter, Ledger, Observe, Observers,
};
use tool_manifest::{Configuration, ProcessSecrets};
use tool_observe::{UsageRecorder, WatchAttemptLayer, WatchLayer};
use tool_policy::{
    AdmissionLayer, ApprovalDesk, ApprovalLayer, BreakerLayer, ErrorPolicyLayer, MemoryApprovals, QuotaLayer,
    RateLimitLayer, RedactionLayer, SharedPrincipals, SharedRules,
};
use tool_registry::Registry;
use tool_runtime::{
    CacheCapacity, CacheLayer, ConcurrencyLimitLayer, FallbackLayer, HedgeLayer, IdempotencyLayer,
    IntentLayer, LedgerCapacity, LedgerLimits, MemoryLedger, RetryLayer, TokioClock,
};
use tool_search::{MemoryUsageLog, UsageLog};

use crate::{
    BuildError, Builder, Toolplane,
    authoring::AuthoringState,
    build::background::Background,
    build::executors::LiveParts,
    build::observers::{emit_changes, own_observers, watch},
    build::policies,
    build::reload::ReloadState,
    callers::authentication::Authentication,
    calls::reentry::LateToolplane,
    calls::views::Views,
    discovery::{Discovery, RecentSearches},
    operate::health::HealthMonitor,
    outgoing::client::Outbound,
    outgoing::webhooks::Webhooks,
    plane::Inner,
    stack::{StackLayers, stack},
};

impl Builder {
    /// Builds the toolplane. Starts nothing, and needs no runtime: work that runs beside calls, such as following servers
    /// that change, runs in the runtime of this call or else of the first use.
    ///
    /// # Errors
    /// If two sources have the same name, the build lacks something that the configuration needs, or a tool has a
    /// `pii_handling` that is not supported. A tool that cannot be used is left out: see [`Toolplane::refused`].
    pub fn build(mut self) -> Result<Toolplane, BuildError> {
        let configuration = mem::take(&mut self.configuration);
        let background = Arc::new(Background::default());
        let reentry = Arc::new(LateToolplane::default());
        let reload = self.reload_state(&configuration, &reentry);
        let (parts, live) = reload.parts(&configuration, &LiveParts::default())?;
        let registry = Registry::new(parts);
        background.start(&registry);
        let clock = self.clock.unwrap_or_else(|| Arc::new(TokioClock::new()));
        let outbound = Arc::new(Outbound::new(reload.secrets()));
        let watch = watch(&configuration, &registry, &outbound, &self.redactor, &clock);
        let webhooks = webhooks(outbound, (&clock, &background), &configuration)?;
        let (tracer, counter) = self.telemetry.into_parts();
        let recent = recent_searches(self.usage_log);
        let usage = usage_recorder(self.daily_usage, &configuration);
        let observers = all_observers((&watch, &webhooks, &recent, &usage), (counter, self.observers));
        emit_changes(&registry, &observers, &self.redactor);
        let rules = SharedRules::new(policies::rules(&configuration));
        let ledger = ledger(self.ledger, &configuration, &clock);
        let desk = desk(self.approvals, self.approval_listeners, &webhooks, &clock);
        let principals = SharedPrincipals::new(policies::principals(&configuration));
        let own_callers = (self.authenticator, self.tokens);
        let authentication = Authentication::new(&configuration, own_callers, &principals, &clock);
        let publisher = reload.publisher(&registry, &clock);
        let error_policy = ErrorPolicyLayer::new(Arc::new(policies::errors(&configuration)));
        let cache = cache(&configuration);
        let (retry, breaker) = with_jitter(self.seed);
        let health = watch.book.clone();
        let layers = StackLayers {
            error_policy: error_policy.clone(),
            watch: WatchLayer::new(observers.clone()).with_tracer(tracer.clone()),
            admission: AdmissionLayer::new(rules.clone()),
            call_layers: self.layers.call,
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
            intent: IntentLayer::new(ledger.clone()),
            watch_attempt: WatchAttemptLayer::new(observers.clone()).with_tracer(tracer),
            redaction: RedactionLayer::new(self.redactor.clone()),
            attempt_layers: self.layers.attempt,
            chaos: self.chaos.clone(),
        };
        let discovery = discovery(recent, self.embedder, &configuration, (&webhooks, &cache));
        let plane = Toolplane::from_inner(Inner {
            cache,
            stack: stack(layers),
            ledger,
            desk,
            registry,
            background,
            rules,
            observers,
            views: Views::default(),
            clock: clock.clone(),
            callers: ArcSwap::from_pointee(policies::callers(&configuration, &principals.load())),
            principals,
            authentication,
            live: ArcSwap::from_pointee(live),
            reload,
            publisher,
            watch,
            webhooks,
            error_policy,
            chaos: self.chaos,
            redactor: self.redactor,
            discovery,
            usage,
            authoring: ArcSwap::from_pointee(AuthoringState::new(&configuration)),
        });
        Ok(reentry.open(plane))
    }

    /// Takes the parts that outlive a configuration.
    fn reload_state(&mut self, configuration: &Configuration, plane: &Arc<LateToolplane>) -> ReloadState {
        self.extensions.plane = plane.clone();
        #[cfg(feature = "workflows")]
        self.extensions.flows.clock.clone_from(&self.clock);
        #[cfg(feature = "routes")]
        {
            self.extensions.route_seed = self.seed;
        }
        let of_process = || Arc::new(ProcessSecrets::of_process(configuration.secrets.clone())) as _;
        ReloadState::new(
            mem::take(&mut self.extensions),
            self.own_secrets.take(),
            self.loaded_secrets.take().unwrap_or_else(of_process),
            &self.redactor,
            mem::take(&mut self.list_cache).without_secrets(&self.redactor),
        )
    }
}

/// Parts of this crate that observe.
type OwnObservers<'a> = (
    &'a HealthMonitor,
    &'a Webhooks,
    &'a Arc<RecentSearches>,
    &'a Option<UsageRecorder>,
);

/// Observer that exports metrics, and the observers of the host program.
type HostObservers = (Option<Arc<dyn Observe>>, Vec<Arc<dyn Observe>>);

/// Returns the observers of this crate, and those of the host program after them.
fn all_observers(
    (watch, webhooks, recent, usage): OwnObservers<'_>,
    (counter, more): HostObservers,
) -> Observers {
    let mut observers = own_observers(watch);
    observers.push(webhooks.of_alerts());
    observers.extend(counter.into_iter().chain(more));
    observers.push(recent.clone());
    observers.extend(
        usage
            .iter()
            .map(|usage| Arc::new(usage.clone()) as Arc<dyn Observe>),
    );
    observers.into_iter().collect()
}

fn webhooks(
    outbound: Arc<Outbound>,
    (clock, background): (&Arc<dyn Clock>, &Arc<Background>),
    configuration: &Configuration,
) -> Result<Webhooks, BuildError> {
    let webhooks = Webhooks::new(outbound, clock.clone(), background.clone());
    webhooks.reconfigure(webhooks.prepare(configuration)?);
    Ok(webhooks)
}

fn discovery(
    recent: Arc<RecentSearches>,
    embedder: Option<Arc<dyn Embedder>>,
    configuration: &Configuration,
    (webhooks, cache): (&Webhooks, &CacheLayer),
) -> Discovery {
    let discovery = Discovery::new(recent, embedder);
    discovery.reconfigure(configuration, webhooks.outbound());
    cache.set_embedder(discovery.embedder());
    discovery
}

fn usage_recorder(
    store: Option<Arc<dyn DailyUsage>>,
    configuration: &Configuration,
) -> Option<UsageRecorder> {
    store.map(|store| UsageRecorder::new(store, policies::usage(configuration)))
}

fn recent_searches(usage_log: Option<Arc<dyn UsageLog>>) -> Arc<RecentSearches> {
    let usage_log = usage_log.unwrap_or_else(|| Arc::new(MemoryUsageLog::default()));
    Arc::new(RecentSearches::new(usage_log))
}

fn desk(
    approvals: Option<Arc<dyn Approvals>>,
    listeners: Vec<Arc<dyn ApprovalListener>>,
    webhooks: &Webhooks,
    clock: &Arc<dyn Clock>,
) -> ApprovalDesk {
    let approvals = approvals.unwrap_or_else(|| Arc::new(MemoryApprovals::default()));
    let listeners = listeners.into_iter().chain([webhooks.of_approvals()]);
    ApprovalDesk::new(approvals, listeners, clock.clone())
}

fn cache(configuration: &Configuration) -> CacheLayer {
    let capacity = configuration.defaults.overrides.get::<CacheCapacity>();
    let CacheCapacity(capacity) = capacity.copied().unwrap_or_default();
    CacheLayer::new(u64::try_from(capacity).unwrap_or(u64::MAX))
}

/// Returns the ledger of the host program, or else one in memory.
fn ledger(
    own: Option<Arc<dyn Ledger>>,
    configuration: &Configuration,
    clock: &Arc<dyn Clock>,
) -> Arc<dyn Ledger> {
    own.unwrap_or_else(|| Arc::new(MemoryLedger::new(ledger_limits(configuration), clock.clone())))
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

fn ledger_limits(configuration: &Configuration) -> LedgerLimits {
    let usual = LedgerLimits::default();
    let capacity = configuration.defaults.overrides.get::<LedgerCapacity>();
    let capacity = capacity.copied().unwrap_or_default();
    usual
        .with_max_entries(capacity.max_entries.unwrap_or(usual.max_entries))
        .with_max_bytes(capacity.max_bytes.unwrap_or(usual.max_bytes))
}
