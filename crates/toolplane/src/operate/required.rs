//! Servers that must run for the gateway to be ready.

use std::{collections::HashSet, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use tokio::{task::JoinSet, time::sleep};
use tool_core::{Source, SourceState, SourceStatus};
use tool_manifest::Configuration;
use tool_registry::Registry;

/// Interval at which they are inspected.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Servers that the configuration calls required. They are not started on first use: a client that waits until the
/// gateway is ready sends no call that would start them.
pub(crate) struct Required {
    registry: Registry,
    names: ArcSwap<HashSet<String>>,
}

impl Required {
    pub(crate) fn new(configuration: &Configuration, registry: Registry) -> Self {
        Self {
            registry,
            names: ArcSwap::from_pointee(names(configuration)),
        }
    }

    /// Applies a new configuration.
    pub(crate) fn reconfigure(&self, configuration: &Configuration) {
        self.names.store(Arc::new(names(configuration)));
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names.load().contains(name)
    }

    /// Starts required servers that do not run: those that ended, and those of a new configuration. Waits while a
    /// failed server backs off. Never completes.
    pub(crate) async fn keep(&self) {
        let mut changes = self.registry.changes();
        // In parallel: a start may take long.
        let mut starts = JoinSet::new();
        loop {
            tokio::select! {
                () = sleep(POLL_INTERVAL) => {}
                _ = changes.changed() => {}
            }
            while starts.try_join_next().is_some() {}
            let sources = self.registry.sources().into_iter();
            for source in sources.filter(|source| self.contains(source.name()) && is_down(&source.status())) {
                starts.spawn(start(source));
            }
        }
    }
}

fn is_down(status: &SourceStatus) -> bool {
    matches!(status.state, SourceState::NotStarted | SourceState::Failed(_)) && status.retry_in.is_none()
}

/// Starts a server, again if it has failed. Its status shows the result.
async fn start(source: Arc<dyn Source>) {
    if source.check().await.is_none() {
        source.load().await;
    }
}

fn names(configuration: &Configuration) -> HashSet<String> {
    let servers = configuration.servers.iter();
    servers
        .filter(|server| server.required && !server.disabled)
        .map(|server| server.name.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, ready},
        sync::Mutex,
    };

    use crate::manifest::{LoadOptions, Syntax, load};
    use tool_core::{BoxFuture, Catalogue, ErrorKind, Feature, ToolError};
    use tool_registry::RegistryParts;

    use super::*;

    /// Server that counts its starts.
    struct Server {
        name: &'static str,
        status: Mutex<SourceStatus>,
        n_loads: Mutex<u32>,
        n_checks: Mutex<u32>,
    }

    impl Server {
        fn new(name: &'static str) -> Arc<Self> {
            Arc::new(Self {
                name,
                status: Mutex::new(SourceStatus::new(SourceState::NotStarted)),
                n_loads: Mutex::default(),
                n_checks: Mutex::default(),
            })
        }

        fn is(&self, state: SourceState) {
            *self.status.lock().unwrap() = SourceStatus::new(state);
        }

        /// Returns the number of loads, and the number of uses after loading.
        fn n_starts(&self) -> (u32, u32) {
            (*self.n_loads.lock().unwrap(), *self.n_checks.lock().unwrap())
        }
    }

    impl Source for Server {
        fn name(&self) -> &str {
            self.name
        }

        fn snapshot(&self) -> Arc<Catalogue> {
            Arc::default()
        }

        fn load(&self) -> BoxFuture<'_, ()> {
            *self.n_loads.lock().unwrap() += 1;
            self.is(SourceState::Ready);
            Box::pin(ready(()))
        }

        fn check(&self) -> BoxFuture<'_, Option<Result<(), ToolError>>> {
            let is_needed = *self.n_loads.lock().unwrap() > 0;
            *self.n_checks.lock().unwrap() += u32::from(is_needed);
            let refused = ToolError::new(ErrorKind::Unavailable, "it does not start");
            Box::pin(ready(is_needed.then_some(Err(refused))))
        }

        fn changed(&self, _: u64) -> BoxFuture<'_, ()> {
            Box::pin(pending())
        }

        fn may_hold(&self, _: Feature, _: &str) -> bool {
            false
        }

        fn status(&self) -> SourceStatus {
            self.status.lock().unwrap().clone()
        }
    }

    fn parts(servers: &[&Arc<Server>]) -> RegistryParts {
        let sources = servers.iter().map(|server| Arc::clone(server) as Arc<dyn Source>);
        RegistryParts::default().with_sources(sources)
    }

    fn required(registry: &Registry) -> Arc<Required> {
        let text = "servers: {needed: {command: x, required: true}, other: {command: x}, \
                    off: {command: x, required: true, disabled: true}}";
        let loaded = load(&LoadOptions::new().text("c", Syntax::Yaml, text)).expect("usable");
        Arc::new(Required::new(&loaded.configuration, registry.clone()))
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_are_not_there_are_started_and_no_others() {
        let servers = ["needed", "other", "off"].map(Server::new);
        let [needed, other, off] = &servers;
        let registry = Registry::new(parts(&[needed, other, off]));
        let required = required(&registry);
        let kept = tokio::spawn(async move { required.keep().await });
        // Between two inspections.
        sleep(POLL_INTERVAL / 2).await;
        sleep(20 * POLL_INTERVAL).await;
        assert_eq!(needed.n_starts(), (1, 0), "it is left alone while it is ready");
        for (state, n_checks) in [
            (SourceState::Starting, 0),
            (SourceState::Stopped, 0),
            (SourceState::Failed("it has ended".to_owned()), 1),
        ] {
            needed.is(state);
            sleep(POLL_INTERVAL).await;
            assert_eq!(needed.n_starts(), (1, n_checks));
        }
        needed.status.lock().unwrap().retry_in = Some(POLL_INTERVAL);
        sleep(20 * POLL_INTERVAL).await;
        assert_eq!(needed.n_starts(), (1, 1), "it rests");
        needed.status.lock().unwrap().retry_in = None;
        sleep(2 * POLL_INTERVAL).await;
        assert_eq!(needed.n_starts(), (1, 3));
        assert_eq!((other.n_starts(), off.n_starts()), ((0, 0), (0, 0)));
        kept.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_comes_with_another_configuration_is_started_at_once() {
        let [before, now] = ["needed"; 2].map(Server::new);
        let registry = Registry::new(parts(&[&before]));
        let required = required(&registry);
        let kept = tokio::spawn(async move { required.keep().await });
        sleep(5 * POLL_INTERVAL / 2).await;
        registry.replace(parts(&[&now]), false);
        sleep(Duration::from_millis(1)).await;
        assert_eq!(now.n_starts(), (1, 0));
        kept.abort();
    }
}
