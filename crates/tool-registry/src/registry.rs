use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use tokio::sync::watch;
use tool_core::{
    Descriptor, Executor, Feature, OnUpdate, Settings, Source, SourceState, SourceStatus, Target, Tool,
    Upstream,
};

use crate::{Snapshot, follow, resolve::Resolver};

/// All tools of all sources. Cloning shares it.
#[derive(Clone)]
pub struct Registry(pub(crate) Arc<Shared>);

/// What a [`Registry`] is made from.
#[derive(Default)]
pub struct RegistryParts {
    /// Where tools come from; of two tools with the same name, that of the earlier source counts.
    pub sources: Vec<Arc<dyn Source>>,
    /// The primitives that run them.
    pub executors: Vec<Arc<dyn Executor>>,
    /// Limits for tools that declare none.
    pub defaults: Settings,
    /// Settings of the tools of an upstream, in the place of the defaults, by the upstream's name.
    pub upstreams: HashMap<String, Settings>,
}

pub(crate) struct Shared {
    sources: Vec<Arc<dyn Source>>,
    executors: HashMap<String, Arc<dyn Executor>>,
    defaults: Settings,
    upstream_settings: HashMap<String, Settings>,
    /// All that there ever were: what is known of one is not lost when its tools go and come again.
    upstreams: Mutex<HashMap<Arc<str>, Arc<Upstream>>>,
    snapshot: ArcSwap<Snapshot>,
    /// Held while a new snapshot is made, so that an older one never replaces a newer one.
    resolving: Mutex<()>,
    revision: watch::Sender<u64>,
}

impl Registry {
    /// A registry of these sources. What they know already is resolved at once; nothing is started.
    #[must_use]
    pub fn new(parts: RegistryParts) -> Self {
        let executors = parts
            .executors
            .into_iter()
            .map(|executor| (executor.kind().to_owned(), executor))
            .collect();
        let registry = Self(Arc::new(Shared {
            sources: parts.sources,
            executors,
            defaults: parts.defaults,
            upstream_settings: parts.upstreams,
            upstreams: Mutex::default(),
            snapshot: ArcSwap::default(),
            resolving: Mutex::new(()),
            revision: watch::Sender::new(0),
        }));
        registry.refresh();
        registry
    }

    /// What is known now.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.0.snapshot.load_full()
    }

    /// The tool of this name, if it is known now: the fast way of [`Registry::find`].
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<Tool>> {
        self.0.snapshot.load().get(name).cloned()
    }

    /// The tool of this name. Sources that may hold it and are not loaded yet are loaded first.
    pub async fn find(&self, name: &str) -> Option<Arc<Tool>> {
        match self.get(name) {
            Some(tool) => Some(tool),
            None => {
                self.find_in(Feature::Tool, name, |snapshot| snapshot.get(name).cloned())
                    .await
            }
        }
    }

    /// The prompt of this name, see [`Registry::find`].
    pub async fn find_prompt(&self, name: &str) -> Option<Arc<Tool>> {
        let look = |snapshot: &Snapshot| snapshot.find(Feature::Prompt, name).cloned();
        self.find_in(Feature::Prompt, name, look).await
    }

    /// The resource of this URI, or what stands for it, see [`Snapshot::resource`] and [`Registry::find`].
    pub async fn find_resource(&self, uri: &str) -> Option<Target> {
        self.find_in(Feature::Resource, uri, |snapshot| snapshot.resource(uri))
            .await
    }

    /// The resource template that is written like this, see [`Registry::find`].
    pub async fn find_template(&self, uri_template: &str) -> Option<Arc<Tool>> {
        let look = |snapshot: &Snapshot| snapshot.find(Feature::ResourceTemplate, uri_template).cloned();
        self.find_in(Feature::ResourceTemplate, uri_template, look).await
    }

    async fn find_in<T>(
        &self,
        feature: Feature,
        key: &str,
        look: impl Fn(&Snapshot) -> Option<T>,
    ) -> Option<T> {
        // Nothing of the snapshot is held while sources are loaded.
        if let Some(found) = look(&self.snapshot()) {
            return Some(found);
        }
        let candidates = self
            .0
            .sources
            .iter()
            .filter(|source| source.may_hold(feature, key));
        let loads: Vec<_> = candidates.map(|source| source.load()).collect();
        if loads.is_empty() {
            return None;
        }
        join_all(loads).await;
        self.refresh();
        look(&self.snapshot())
    }

    /// Loads every source that is not loaded yet, all at once, and returns what is known then. A source that fails
    /// is left out: see [`Registry::status`].
    pub async fn load(&self) -> Arc<Snapshot> {
        join_all(self.0.sources.iter().map(|source| source.load())).await;
        self.refresh();
        self.snapshot()
    }

    /// Where tools come from, in their order.
    #[must_use]
    pub fn sources(&self) -> &[Arc<dyn Source>] {
        &self.0.sources
    }

    /// What several tools have in common that are run by the server or host of this name.
    #[must_use]
    pub fn upstream(&self, name: impl Into<Arc<str>>) -> Arc<Upstream> {
        self.0.upstream(name.into())
    }

    /// How each source is, in their order.
    #[must_use]
    pub fn status(&self) -> Vec<(String, SourceStatus)> {
        self.0
            .sources
            .iter()
            .map(|source| (source.name().to_owned(), source.status()))
            .collect()
    }

    /// The source that may have a tool or prompt of this name, or a resource of this URI, and has failed, with the
    /// reason: what to tell someone who asks for what is missing with its server.
    #[must_use]
    pub fn failed_owner(&self, feature: Feature, name: &str) -> Option<(String, String)> {
        self.0
            .sources
            .iter()
            .filter(|source| source.may_hold(feature, name))
            .find_map(|source| match source.status().state {
                SourceState::Failed(reason) => Some((source.name().to_owned(), reason)),
                _ => None,
            })
    }

    /// The source that this comes from, if it still has it.
    #[must_use]
    pub fn source_of(&self, tool: &Tool) -> Option<Arc<dyn Source>> {
        let is_it =
            |known: &Arc<Descriptor>| Arc::ptr_eq(known, tool.descriptor()) || known == tool.descriptor();
        let sources = &self.0.sources;
        let source = sources.iter().find(|source| {
            let catalogue = source.snapshot();
            catalogue.tools.iter().chain(&catalogue.others).any(is_it)
        });
        source.cloned()
    }

    /// Hands news of the resources of every source to this: see [`Source::on_update`].
    pub fn on_update(&self, tell: &OnUpdate) {
        for source in &self.0.sources {
            source.on_update(Arc::clone(tell));
        }
    }

    /// Tells when there is a new snapshot, by its revision.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.revision.subscribe()
    }

    /// Follows the sources until the last clone of this registry is gone: what they add or lose later is in the
    /// snapshot soon after. Needs a tokio runtime.
    pub fn follow(&self) {
        for source in &self.0.sources {
            tokio::spawn(follow::follow(
                Arc::downgrade(&self.0),
                source.clone(),
                self.changes(),
            ));
        }
    }

    /// Makes a new snapshot if a source has changed.
    pub(crate) fn refresh(&self) {
        let shared = &*self.0;
        let _guard = shared.resolving.lock().unwrap_or_else(PoisonError::into_inner);
        let catalogues: Vec<_> = shared
            .sources
            .iter()
            .map(|source| (source.name(), source.snapshot()))
            .collect();
        let before = shared.snapshot.load_full();
        let unchanged = before.revision > 0
            && before
                .seen
                .iter()
                .eq(catalogues.iter().map(|(_, catalogue)| &catalogue.revision));
        if unchanged {
            return;
        }
        let resolver = Resolver {
            executors: &shared.executors,
            defaults: shared.defaults,
            upstream_settings: &shared.upstream_settings,
            shared,
            before: &before,
        };
        let snapshot = resolver.resolve(&catalogues);
        for refused in &snapshot.refused {
            if !before.refused.contains(refused) {
                tracing::warn!(
                    source = refused.source,
                    name = refused.name,
                    "{} not offered: {}",
                    refused.feature.as_str(),
                    refused.reason
                );
            }
        }
        let revision = snapshot.revision;
        shared.snapshot.store(Arc::new(snapshot));
        shared.revision.send_replace(revision);
    }
}

impl Shared {
    /// What is known of the upstream of this name.
    pub(crate) fn upstream(&self, name: Arc<str>) -> Arc<Upstream> {
        let mut upstreams = self.upstreams.lock().unwrap_or_else(PoisonError::into_inner);
        upstreams
            .entry(name)
            .or_insert_with_key(|name| Arc::new(Upstream::new(name.clone())))
            .clone()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let snapshot = self.snapshot();
        f.debug_struct("Registry")
            .field("revision", &snapshot.revision)
            .field("n_tools", &snapshot.tools().len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RegistryParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryParts")
            .field("defaults", &self.defaults)
            .finish_non_exhaustive()
    }
}
