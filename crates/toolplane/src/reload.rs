//! Another configuration in the place of the present one, while calls are made.

use std::{collections::HashMap, sync::Arc};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;
use tool_core::{BoxFuture, Reference, Secret, SecretError, Secrets};
use tool_manifest::{Configuration, Loaded};
use tool_policy::{CredentialRefreshLayer, Redactor};
use tool_registry::RegistryParts;

use crate::{
    BuildError, Toolplane,
    builder::Own,
    executors::{self, KeptIn, LetGo, Running},
    policies::{self, callers, rules},
};

/// What a reload needs of what was there from the start.
pub(crate) struct Reloading {
    own: Own,
    shared: Arc<SharedSecrets>,
    /// The same, with every secret known to whoever hides them.
    secrets: Arc<dyn Secrets>,
    /// Held while a configuration is put in the place of another: one at a time.
    let_go: Mutex<LetGo>,
    kept_in: KeptIn,
}

/// The present values of references. Servers that stay keep asking here, whichever configuration they came with.
struct SharedSecrets {
    present: ArcSwap<Arc<dyn Secrets>>,
    /// Held while a value is renewed: tools that share one renew it once.
    turns: Mutex<HashMap<Reference, Arc<AsyncMutex<()>>>>,
}

impl Reloading {
    pub(crate) fn new(own: Own, secrets: Arc<dyn Secrets>, redactor: &Redactor, kept_in: KeptIn) -> Self {
        let shared = Arc::new(SharedSecrets {
            present: ArcSwap::from_pointee(secrets),
            turns: Mutex::default(),
        });
        Self {
            own,
            secrets: redactor.watching(shared.clone()),
            shared,
            let_go: Mutex::default(),
            kept_in,
        }
    }

    /// The values of references, whichever configuration they come from.
    pub(crate) fn secrets(&self) -> Arc<dyn Secrets> {
        self.secrets.clone()
    }

    /// What a configuration comes to, with whatever runs already and stays.
    pub(crate) fn parts(
        &self,
        configuration: &Configuration,
        before: &Running,
    ) -> Result<(RegistryParts, Running), BuildError> {
        executors::check(configuration)?;
        BuildError::of_protection(configuration.tools.iter().chain(&self.own.tools))?;
        let primitives = executors::primitives(configuration, &self.secrets(), before);
        primitives.running.servers.keep_lists(&self.kept_in);
        self.own.with(configuration, primitives)
    }

    /// Ends all servers: those that run for the present configuration and those that were let go.
    pub(crate) async fn shutdown(&self, running: &Running) {
        let let_go = std::mem::take(&mut *self.let_go.lock());
        futures_util::future::join(running.servers.shutdown(), let_go.shutdown()).await;
    }
}

impl Toolplane {
    /// Puts another configuration in the place of the present one. What the program added itself stays.
    ///
    /// Nothing that did not change is interrupted: a server with the same settings stays connected, and what is known of a
    /// tool (its limits, its breaker, its health) is kept as long as it has the same name and is run by the same
    /// upstream. So are alerts that fire, approvals that are asked for, what waits for a webhook, and the cached answers of
    /// tools that stay as they were. Calls that have begun end as they began; a server that is gone from the configuration
    /// ends with the last of its calls. A tool that an operator [switched off](Toolplane::disable) stays off. If this fails, everything stays as it was.
    ///
    /// How much is remembered counts from the start: `defaults.cache_bytes`, and `max_entries` and `max_bytes` of
    /// `defaults.idempotency`. The section `gateway` is for whoever serves.
    ///
    /// # Errors
    /// When two sources have the same name, something is asked for that was left out of this build, or a tool asks for a
    /// `pii_handling` that nothing does. Tools that cannot be used are left out: see [`Toolplane::refused`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn reload(&self, loaded: &Loaded) -> Result<(), BuildError> {
        let inner = &*self.0;
        let reloading = &inner.reloading;
        let mut let_go = reloading.let_go.lock();
        let configuration = &loaded.configuration;
        let before = inner.running.load_full();
        let (parts, running) = reloading.parts(configuration, &before)?;
        let hooks = inner.hooks.of(configuration)?;
        // Before the tools that need the new values.
        reloading
            .shared
            .present
            .store(Arc::new(Arc::new(loaded.secrets())));
        let_go.add(&before.servers, &running.servers);
        let mut rules = rules(configuration);
        rules.switched_off.clone_from(&inner.rules.load().switched_off);
        let callers = callers(configuration);
        let known = inner.callers.load();
        let lists_changed = **inner.rules.load() != rules
            || known.local != callers.local
            || known.anonymous != callers.anonymous;
        // Rules first: no tool is shown or called for a moment that the new ones forbid.
        inner.rules.store(&rules);
        inner.callers.store(Arc::new(callers));
        inner.running.store(Arc::new(running));
        inner.surface.adopt(Arc::new(policies::errors(configuration)));
        inner.hooks.adopt(hooks);
        inner.watch.adopt(configuration);
        let off = self.switched_off();
        inner.registry.replace(parts, lists_changed);
        for (tool, _) in off {
            // Which values were refused is not known any more, so that no call would see that there are others.
            let why = "the configuration was loaded again";
            CredentialRefreshLayer::enable(&tool, why, &inner.observers, inner.clock.wall());
        }
        inner.views.clear();
        Ok(())
    }
}

impl Secrets for SharedSecrets {
    fn get<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        let secrets = self.present.load_full();
        Box::pin(async move { secrets.get(reference).await })
    }

    fn renew<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<(), SecretError>> {
        Box::pin(async move {
            let secrets = self.present.load_full();
            let before = secrets.get(reference).await;
            let turn = self.turn(reference);
            let _turn = turn.lock().await;
            if let (Ok(before), Ok(now)) = (before, secrets.get(reference).await)
                && before.as_ref().map(Secret::expose) != now.as_ref().map(Secret::expose)
            {
                // Another tool that is shown to the same upstream has renewed it meanwhile.
                return Ok(());
            }
            secrets.renew(reference).await
        })
    }

    fn has(&self, reference: &Reference) -> Result<bool, SecretError> {
        self.present.load().has(reference)
    }
}

impl SharedSecrets {
    /// Whose holder renews a value.
    fn turn(&self, reference: &Reference) -> Arc<AsyncMutex<()>> {
        let mut turns = self.turns.lock();
        Arc::clone(turns.entry(reference.clone()).or_default())
    }
}
