//! Replacement of the configuration while calls are made.

use std::{collections::HashMap, sync::Arc};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;
use tool_core::{BoxFuture, Clock, Reference, Secret, SecretError, Secrets};
use tool_manifest::{Configuration, Loaded};
use tool_policy::{CredentialRefreshLayer, Redactor};
use tool_registry::{Pins, Publisher, Registry, RegistryParts};

use crate::{
    BuildError, Toolplane,
    authoring::AuthoringState,
    build::executors::{ListCache, LiveParts, RetiredServers},
    build::features,
    build::policies::{self, callers, rules},
    host::{extensions::HostExtensions, stored_manifests::CheckedManifests},
};

/// State that outlives a configuration and that a reload needs.
pub(crate) struct ReloadState {
    own: HostExtensions,
    shared: Arc<SharedSecrets>,
    /// Secrets behind the redactor, which learns every value.
    secrets: Arc<dyn Secrets>,
    /// Locked while a configuration replaces another: one at a time.
    let_go: Mutex<RetiredServers>,
    list_cache: ListCache,
}

/// Current resolver of references. Servers that stay use it, whichever configuration they came with.
struct SharedSecrets {
    /// Resolver of the host program, which precedes those of configurations.
    own: Option<Arc<dyn Secrets>>,
    present: ArcSwap<Arc<dyn Secrets>>,
    /// Locked while a value is renewed: tools that share one renew it once.
    turns: Mutex<HashMap<Reference, Arc<AsyncMutex<()>>>>,
}

impl ReloadState {
    pub(crate) fn new(
        own: HostExtensions,
        own_secrets: Option<Arc<dyn Secrets>>,
        secrets: Arc<dyn Secrets>,
        redactor: &Redactor,
        list_cache: ListCache,
    ) -> Self {
        let shared = Arc::new(SharedSecrets {
            own: own_secrets,
            present: ArcSwap::from_pointee(secrets),
            turns: Mutex::default(),
        });
        Self {
            own,
            secrets: redactor.wrap_secrets(shared.clone()),
            shared,
            let_go: Mutex::default(),
            list_cache,
        }
    }

    /// Returns the resolver of references, which follows the configuration.
    pub(crate) fn secrets(&self) -> Arc<dyn Secrets> {
        self.secrets.clone()
    }

    /// Returns the storage of pins.
    pub(crate) fn pins(&self) -> Arc<dyn Pins> {
        self.own.pins.store.clone()
    }

    /// Returns the publisher of the store, if there is one.
    pub(crate) fn publisher(&self, registry: &Registry, clock: &Arc<dyn Clock>) -> Option<Publisher> {
        let store = self.own.store.as_ref().map(|parts| parts.store.clone());
        let manifests = || Arc::new(CheckedManifests(registry.clone()));
        store.map(|store| Publisher::new(store, manifests(), clock.clone()))
    }

    /// Creates the parts of a configuration, reusing those that run and stay.
    pub(crate) fn parts(
        &self,
        configuration: &Configuration,
        before: &LiveParts,
    ) -> Result<(RegistryParts, LiveParts), BuildError> {
        features::check(configuration, &self.own)?;
        BuildError::of_protection(configuration.tools.iter().chain(&self.own.tools))?;
        let primitives = crate::build::executors::primitives(configuration, &self.secrets(), before);
        primitives.live.servers.keep_lists(&self.list_cache);
        self.own.with(configuration, primitives)
    }

    /// Stops all servers: those of the current configuration and retired ones; and all containers.
    pub(crate) async fn shutdown(&self, running: &LiveParts) {
        let let_go = std::mem::take(&mut *self.let_go.lock());
        futures_util::future::join(running.shutdown(), let_go.shutdown()).await;
    }
}

impl Toolplane {
    /// Replaces the configuration. Extensions of the host program stay, its layers and its
    /// [`secrets`](crate::Builder::secrets) among them.
    ///
    /// Nothing unchanged is interrupted: a server with equal settings stays connected, and the state of a tool (its
    /// limits, breaker and health) is kept while it has the same name and upstream. So are firing alerts, pending
    /// approvals, queued messages of a webhook, and the cached results of unchanged tools. Running calls end as they
    /// began; a removed server stops after its last call. A tool that an operator [disabled](Toolplane::disable)
    /// stays disabled. If the reload fails, everything stays as it was.
    ///
    /// Storage limits are fixed at the start: `defaults.cache_bytes`, and `max_entries` and `max_bytes` of
    /// `defaults.idempotency`. So is `gateway.auth`; roles and principals take effect with the next request. The section `gateway` belongs to the serving program.
    ///
    /// # Errors
    /// If two sources have the same name, the build lacks something that the configuration needs, or a tool has a
    /// `pii_handling` that is not supported. Tools that cannot be used are left out: see [`Toolplane::refused`].
    pub fn reload(&self, loaded: &Loaded) -> Result<(), BuildError> {
        let inner = &*self.0;
        inner.start_background();
        let _runtime = inner.background.enter();
        let reloading = &inner.reload;
        let mut let_go = reloading.let_go.lock();
        let configuration = &loaded.configuration;
        let before = inner.live.load_full();
        let (parts, running) = reloading.parts(configuration, &before)?;
        let hooks = inner.webhooks.prepare(configuration)?;
        // Before the tools that need the new values.
        reloading
            .shared
            .present
            .store(Arc::new(Arc::new(loaded.secrets())));
        let_go.add(&before.servers, &running.servers);
        let mut rules = rules(configuration);
        rules.disabled.clone_from(&inner.rules.load().disabled);
        let principals = policies::principals(configuration);
        let lists_changed = **inner.rules.load() != rules || *inner.principals.load() != principals;
        // Rules first: no tool that they forbid is visible or callable for a moment.
        inner.rules.store(&rules);
        inner.callers.store(Arc::new(callers(configuration, &principals)));
        inner.principals.store(principals);
        inner.live.store(Arc::new(running));
        inner
            .error_policy
            .reconfigure(Arc::new(policies::errors(configuration)));
        inner.webhooks.reconfigure(hooks);
        inner.watch.reconfigure(configuration);
        if let Some(usage) = &inner.usage {
            usage.reconfigure(policies::usage(configuration));
        }
        inner
            .authoring
            .store(Arc::new(AuthoringState::new(configuration)));
        inner
            .discovery
            .reconfigure(configuration, inner.webhooks.outbound());
        inner.cache.set_embedder(inner.discovery.embedder());
        let off = self.disabled_items();
        inner.registry.replace(parts, lists_changed);
        for (tool, _) in off {
            // The rejected values are unknown now, so no call could notice that there are new ones.
            let why = "the configuration was loaded again";
            CredentialRefreshLayer::enable(&tool, why, &inner.observers, inner.clock.wall());
        }
        inner.views.clear();
        Ok(())
    }
}

impl Secrets for SharedSecrets {
    fn get<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        let secrets = self.current();
        Box::pin(async move { secrets.get(reference).await })
    }

    fn renew<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<(), SecretError>> {
        Box::pin(async move {
            let secrets = self.current();
            let before = secrets.get(reference).await;
            let turn = self.turn(reference);
            let _turn = turn.lock().await;
            if let (Ok(before), Ok(now)) = (before, secrets.get(reference).await)
                && before.as_ref().map(Secret::expose) != now.as_ref().map(Secret::expose)
            {
                // Another tool of the same upstream has renewed it meanwhile.
                return Ok(());
            }
            secrets.renew(reference).await
        })
    }

    fn has(&self, reference: &Reference) -> Result<bool, SecretError> {
        self.current().has(reference)
    }
}

impl SharedSecrets {
    fn current(&self) -> Arc<dyn Secrets> {
        match &self.own {
            Some(own) => own.clone(),
            None => Arc::clone(&self.present.load()),
        }
    }

    /// Returns the lock for renewing a value.
    fn turn(&self, reference: &Reference) -> Arc<AsyncMutex<()>> {
        let mut turns = self.turns.lock();
        Arc::clone(turns.entry(reference.clone()).or_default())
    }
}
