use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use tool_core::{Descriptor, Executor, PinMode, SettingLevel, Settings, Source};
use tool_manifest::Configuration;
use tool_registry::{FixedSource, MemoryPins, PinPolicy, Pins, RegistryParts, Store, StoreSource};

use crate::{
    BuildError, StoredManifests,
    authoring::meta_tools::{self, AuthoringExecutor},
    build::executors::{LiveParts, Primitives},
    calls::reentry::LateToolplane,
    sections::sections,
};

/// Tools, executors and sources that the host program adds to a configuration. They stay when the configuration is
/// reloaded.
#[derive(Default)]
pub(crate) struct HostExtensions {
    pub(crate) tools: Vec<Arc<Descriptor>>,
    pub(crate) executors: Vec<Arc<dyn Executor>>,
    pub(crate) sources: Vec<Arc<dyn Source>>,
    pub(crate) store: Option<StoreParts>,
    pub(crate) pins: PinSetup,
    /// The toolplane, for the meta-tools by which agents make tools, and for workflows.
    pub(crate) plane: Arc<LateToolplane>,
    /// Storage of workflows.
    #[cfg(feature = "workflows")]
    pub(crate) flows: crate::host::workflows::FlowSetup,
    /// Executor of workflows, with those that wait.
    #[cfg(feature = "workflows")]
    pub(crate) workflows: std::sync::OnceLock<tool_flow::WorkflowExecutor>,
    /// Seed of the draws of routes.
    #[cfg(feature = "routes")]
    pub(crate) route_seed: Option<u64>,
    /// Executor of routes.
    #[cfg(feature = "routes")]
    pub(crate) routes: std::sync::OnceLock<tool_route::RouteExecutor>,
}

/// Name of the source of all tools of the configuration and of the host program.
pub(crate) const OWN_SOURCE: &str = "configuration";

/// Storage of pins, and the mode that the host program sets.
pub(crate) struct PinSetup {
    pub(crate) store: Arc<dyn Pins>,
    /// Mode of all sources, instead of those of the configuration.
    pub(crate) mode: Option<PinMode>,
}

impl Default for PinSetup {
    fn default() -> Self {
        Self {
            store: Arc::new(MemoryPins::default()),
            mode: None,
        }
    }
}

impl PinSetup {
    fn policy(&self, configuration: &Configuration) -> PinPolicy {
        let usual = configuration.policy.pin.unwrap_or_default();
        let mut policy = PinPolicy::new(self.store.clone()).with_mode(self.mode.unwrap_or(usual));
        if let Some(mode) = self.mode {
            policy = policy.with_source(OWN_SOURCE, mode);
        }
        let servers = configuration.servers.iter();
        let servers = servers.map(|server| (&server.name, server.pin));
        let endpoints = configuration.endpoints.iter();
        let endpoints = endpoints.map(|endpoint| (&endpoint.name, endpoint.pin));
        for (name, pin) in servers.chain(endpoints) {
            policy = match (pin, self.mode) {
                (None, _) => policy,
                (Some(own @ PinMode::Off), _) | (Some(own), None) => policy.with_source(name, own),
                (Some(_), Some(mode)) => policy.with_source(name, mode),
            };
        }
        policy
    }
}

/// Store of tools, and the source that offers them.
pub(crate) struct StoreParts {
    pub(crate) store: Arc<dyn Store>,
    source: Arc<StoreSource>,
}

impl StoreParts {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        let source = Arc::new(StoreSource::new(store.clone(), Arc::new(StoredManifests)));
        Self { store, source }
    }
}

impl HostExtensions {
    /// Returns `true` if the host program has an executor of this kind.
    pub(crate) fn has_executor(&self, kind: &str) -> bool {
        self.executors.iter().any(|executor| executor.kind() == kind)
    }

    #[cfg(feature = "workflows")]
    fn workflows(&self) -> &tool_flow::WorkflowExecutor {
        let create = || crate::host::workflows::executor(&self.plane, &self.flows);
        self.workflows.get_or_init(create)
    }

    #[cfg(feature = "routes")]
    fn routes(&self) -> &tool_route::RouteExecutor {
        let create = || {
            let host = Arc::new(crate::host::routes::RouteHost::new(self.plane.clone()));
            let executor = tool_route::RouteExecutor::new(self.plane.clone(), host);
            match self.route_seed {
                Some(seed) => executor.with_seed(seed),
                None => executor,
            }
        };
        self.routes.get_or_init(create)
    }

    /// Returns the executors whose tools call other tools.
    pub(crate) fn callers(&self) -> Vec<Arc<dyn Executor>> {
        // Without either feature, nothing of it is used.
        let Self { plane: _, .. } = self;
        vec![
            #[cfg(feature = "workflows")]
            Arc::new(self.workflows().clone()),
            #[cfg(feature = "routes")]
            Arc::new(self.routes().clone()),
        ]
    }

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
        executors.extend(self.callers());
        executors.extend(self.executors.iter().cloned());
        let tools = configuration.tools.iter().chain(&self.tools).cloned().collect();
        let mut sources: Vec<Arc<dyn Source>> = vec![Arc::new(FixedSource::new(OWN_SOURCE, tools))];
        sources.extend(self.store.as_ref().map(|parts| parts.source.clone() as _));
        let authoring = meta_tools::descriptors(&configuration.authoring);
        if self.store.is_some() && !authoring.is_empty() {
            executors.push(Arc::new(AuthoringExecutor(self.plane.clone())));
            sources.push(Arc::new(FixedSource::new(meta_tools::SOURCE, authoring)));
        }
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
            .with_pins(self.pins.policy(configuration))
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

/// Returns the settings for the tools of each server and endpoint, which replace the defaults.
fn upstreams(configuration: &Configuration, defaults: &Settings) -> HashMap<String, Settings> {
    let servers = configuration.servers.iter();
    let servers = servers.map(|server| (&server.name, &server.overrides));
    let endpoints = configuration.endpoints.iter();
    let endpoints = endpoints.map(|endpoint| (&endpoint.name, &endpoint.overrides));
    let upstreams = servers.chain(endpoints).map(|(name, overrides)| {
        let settings = defaults.clone().overridden(overrides, SettingLevel::Upstream);
        (name.clone(), settings)
    });
    upstreams.collect()
}
