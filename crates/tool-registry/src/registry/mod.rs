mod loading;
mod lookup;
mod parts;
mod pinned;
mod versions;

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch;
use tool_core::{
    Executor, Feature, ListWarning, OnUpdate, PrepareError, Settings, Source, SourceStatus, Trust, Update,
    UpstreamState,
};

use self::{loading::InitialLoads, versions::VersionedTools};
pub use self::{parts::RegistryParts, pinned::OnDefinitionChange};
use crate::{
    PinPolicy, Snapshot, client_snapshots::ClientSnapshots, follow, log::log_changes, namespaces::Namespaces,
};

/// All tools of all sources. Clones share one registry.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tool_core::Feature;
/// use tool_registry::{Registry, RegistryParts};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let registry = Registry::new(RegistryParts::default());
/// let snapshot = registry.load_within(Duration::from_secs(4)).await;
/// assert!(snapshot.list(Feature::Prompt).is_empty());
/// assert!(registry.find("search").await.is_none());
/// # }
/// ```
#[derive(Clone)]
pub struct Registry(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) parts: ArcSwap<Parts>,
    n_replaced: AtomicU64,
    /// `true` once changes of the sources are followed.
    follows: AtomicBool,
    /// Reports that sources have changed, to the task that makes snapshots.
    pub(crate) source_changes: watch::Sender<()>,
    /// Generation of the parts.
    replacements: watch::Sender<u64>,
    /// Receivers of updates of the sources, including sources that are added later.
    listeners: Mutex<Vec<OnUpdate>>,
    /// Receivers of definitions that are withheld or accepted.
    pub(crate) definition_listeners: Mutex<Vec<OnDefinitionChange>>,
    /// State of each upstream of the latest configuration. It survives if the upstream's tools disappear and return.
    upstreams: Mutex<HashMap<Arc<str>, Arc<UpstreamState>>>,
    pub(crate) snapshot: ArcSwap<Snapshot>,
    pub(crate) clients: ClientSnapshots,
    /// Held while a snapshot is made, so that an older one never replaces a newer one.
    pub(crate) resolving: Mutex<()>,
    /// Tools in other versions than those of the snapshot.
    versioned: VersionedTools,
    /// Loads of sources whose lists are unknown.
    initial_loads: InitialLoads,
    /// Generation of the parts whose sources have all offered their kept lists, plus 1. 0 before the first recall.
    recalled: watch::Sender<u64>,
    /// Number of recalls in progress. Kept lists of single sources are not resolved until all have ended.
    pub(crate) n_recalling: AtomicUsize,
    revision: watch::Sender<u64>,
}

/// Input of a resolution. All parts are replaced together.
pub(crate) struct Parts {
    pub(crate) sources: Vec<Arc<dyn Source>>,
    pub(crate) executors: HashMap<String, Arc<dyn Executor>>,
    pub(crate) defaults: Settings,
    pub(crate) upstream_settings: HashMap<String, Settings>,
    pub(crate) namespaces: Namespaces,
    pub(crate) pins: PinPolicy,
    /// Number of parts before these.
    pub(crate) generation: u64,
}

impl Parts {
    /// Returns `true` if the operator renamed a source's tool to this name.
    pub(crate) fn is_renamed(&self, source: &str, name: &str) -> bool {
        let mut named = self.sources.iter().filter(|known| known.name() == source);
        named.any(|known| known.is_renamed(name))
    }
}

impl From<RegistryParts> for Parts {
    fn from(parts: RegistryParts) -> Self {
        let executors = parts.executors.into_iter();
        Self {
            namespaces: Namespaces::new(&parts.sources),
            sources: parts.sources,
            executors: executors
                .map(|executor| (executor.kind().to_owned(), executor))
                .collect(),
            defaults: parts.defaults,
            upstream_settings: parts.upstreams,
            pins: parts.pins,
            generation: 0,
        }
    }
}

/// Reason for which a snapshot is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResolveReason {
    /// A source may have changed.
    Sources,
    /// The admission rules have changed.
    Admission,
    /// The pins have changed.
    Pins,
    /// The parts were replaced. Every tool is prepared again.
    Parts {
        /// `true` if unchanged lists count as changed.
        lists_changed: bool,
    },
}

impl Registry {
    /// Makes a registry of these sources. Lists that they know already are resolved at once. No server is started.
    #[must_use]
    pub fn new(parts: RegistryParts) -> Self {
        let registry = Self(Arc::new(Shared {
            parts: ArcSwap::from_pointee(parts.into()),
            n_replaced: AtomicU64::new(0),
            follows: AtomicBool::new(false),
            source_changes: watch::Sender::default(),
            replacements: watch::Sender::default(),
            listeners: Mutex::default(),
            definition_listeners: Mutex::default(),
            upstreams: Mutex::default(),
            snapshot: ArcSwap::default(),
            clients: ClientSnapshots::default(),
            resolving: Mutex::new(()),
            versioned: VersionedTools::default(),
            initial_loads: InitialLoads::default(),
            recalled: watch::Sender::new(0),
            n_recalling: AtomicUsize::new(0),
            revision: watch::Sender::new(0),
        }));
        let shared = Arc::downgrade(&registry.0);
        registry.on_update(
            &(Arc::new(move |update: &Update| {
                if let Update::ClientLists { source, .. } = update
                    && let Some(shared) = shared.upgrade()
                {
                    shared.clients.add_source(source);
                }
            }) as OnUpdate),
        );
        registry.refresh();
        registry
    }

    /// Replaces the parts in one step: a call finds either the previous tools or the new ones.
    ///
    /// The state that layers have of a tool is kept if its name and its upstream stay the same, also while the source of that
    /// name has not read its lists yet. A source that is in both parts continues unchanged. A source that is not in the new
    /// parts is released, and calls that it still runs end in their own time.
    ///
    /// `lists_changed` marks unchanged lists as changed, because permissions to see them have changed.
    pub fn replace(&self, parts: RegistryParts, lists_changed: bool) {
        let generation = self.0.n_replaced.fetch_add(1, Ordering::Relaxed) + 1;
        let parts = Arc::new(Parts {
            generation,
            ..Parts::from(parts)
        });
        let before = self.0.parts.swap(parts.clone());
        self.0.replacements.send_replace(generation);
        let is_new = |source: &&Arc<dyn Source>| !before.has(source);
        for source in parts.sources.iter().filter(is_new) {
            for listener in &*self.0.listeners.lock() {
                source.on_update(Arc::clone(listener));
            }
        }
        self.resolve(ResolveReason::Parts { lists_changed });
        if self.0.follows.load(Ordering::Relaxed) {
            parts
                .sources
                .iter()
                .filter(is_new)
                .for_each(|source| self.follow_one(source));
        }
    }

    /// Marks all lists as changed although they hold the same, because permissions to see them have changed.
    pub fn mark_lists_changed(&self) {
        self.resolve(ResolveReason::Admission);
    }

    /// Returns the present snapshot.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.0.snapshot.load_full()
    }

    /// Returns the sources, in their order.
    #[must_use]
    pub fn sources(&self) -> Vec<Arc<dyn Source>> {
        self.0.parts.load().sources.clone()
    }

    /// Returns the source of this name.
    #[must_use]
    pub fn source(&self, name: &str) -> Option<Arc<dyn Source>> {
        let parts = self.0.parts.load();
        parts.sources.iter().find(|source| source.name() == name).cloned()
    }

    /// Returns the state that all tools of the server or host of this name share.
    #[must_use]
    pub fn upstream(&self, name: impl Into<Arc<str>>) -> Arc<UpstreamState> {
        self.0.upstream(name.into())
    }

    /// Returns the name and the status of each source, in their order.
    #[must_use]
    pub fn status(&self) -> Vec<(String, SourceStatus)> {
        let parts = self.0.parts.load();
        parts
            .sources
            .iter()
            .map(|source| (source.name().to_owned(), source.status()))
            .collect()
    }

    /// Returns warnings about executor settings that operators wrote, with the tool's name: see [`Executor::warnings`].
    #[must_use]
    pub fn warnings(&self) -> Vec<(Arc<str>, PrepareError)> {
        let parts = self.0.parts.load();
        let snapshot = self.snapshot();
        let tools = snapshot.list(Feature::Tool).iter();
        let written = tools.filter(|tool| tool.descriptor().origin.trust == Trust::Operator);
        let warned = written.flat_map(|tool| {
            let descriptor = tool.descriptor();
            let executor = parts.executors.get(&descriptor.executor.kind);
            let warnings = executor.map(|executor| executor.warnings(descriptor, tool.settings()));
            let warnings = warnings.unwrap_or_default().into_iter();
            warnings.map(|warning| (tool.name().clone(), warning))
        });
        warned.collect()
    }

    /// Returns warnings about the present lists, each with the name of its source.
    #[must_use]
    pub fn list_warnings(&self) -> Vec<(String, ListWarning)> {
        let sources = self.sources();
        let of_sources = sources.iter().flat_map(|source| {
            let name = source.name().to_owned();
            source
                .warnings()
                .into_iter()
                .map(move |warning| (name.clone(), warning))
        });
        let snapshot = self.snapshot();
        of_sources.chain(snapshot.warnings().iter().cloned()).collect()
    }

    /// Registers a receiver of the updates of every source, including sources that [`Registry::replace`] adds later: see
    /// [`Source::on_update`].
    pub fn on_update(&self, listener: &OnUpdate) {
        let mut all = self.0.listeners.lock();
        all.push(Arc::clone(listener));
        for source in &self.0.parts.load().sources {
            source.on_update(Arc::clone(listener));
        }
    }

    /// Returns a receiver that yields the revision of every new snapshot.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.revision.subscribe()
    }

    /// Follows the sources until the last clone of this registry is dropped: their changes are in the snapshot soon after.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn follow(&self) {
        if !self.0.follows.swap(true, Ordering::Relaxed) {
            let changes = self.0.source_changes.subscribe();
            tokio::spawn(follow::refresh(Arc::downgrade(&self.0), changes));
        }
        for source in &self.0.parts.load().sources {
            self.follow_one(source);
        }
    }

    fn follow_one(&self, source: &Arc<dyn Source>) {
        let registry = Arc::downgrade(&self.0);
        let replacements = self.0.replacements.subscribe();
        tokio::spawn(follow::follow(registry, source.clone(), replacements));
    }

    /// Makes a new snapshot if a source has changed.
    pub(crate) fn refresh(&self) {
        self.resolve(ResolveReason::Sources);
    }

    pub(crate) fn resolve(&self, reason: ResolveReason) {
        let shared = &*self.0;
        let guard = shared.resolving.lock();
        let parts = shared.parts.load_full();
        let catalogues: Vec<_> = parts
            .sources
            .iter()
            .map(|source| (source.name(), source.snapshot()))
            .collect();
        let before = shared.snapshot.load_full();
        let unchanged = reason == ResolveReason::Sources
            && before.revision > 0
            && before
                .source_revisions
                .iter()
                .eq(catalogues.iter().map(|(_, catalogue)| &catalogue.revision));
        if unchanged {
            return;
        }
        let is_renamed = |source: &str, name: &str| parts.is_renamed(source, name);
        let resolver = Self::resolver(shared, &parts, &before, reason, &is_renamed);
        let snapshot = resolver.resolve(&catalogues);
        log_changes(&before, &snapshot);
        if let ResolveReason::Parts { .. } = reason {
            shared.forget_upstreams(&parts, &snapshot);
        }
        let (revision, snapshot) = (snapshot.revision, Arc::new(snapshot));
        shared.snapshot.store(snapshot.clone());
        shared.revision.send_replace(revision);
        // Listeners may use the registry.
        drop(guard);
        shared.report_withheld(&[&before], &snapshot);
    }
}

impl Parts {
    fn has(&self, source: &Arc<dyn Source>) -> bool {
        self.sources.iter().any(|known| Arc::ptr_eq(known, source))
    }
}

impl Shared {
    /// Returns `true` if this is one of the present sources.
    pub(crate) fn has(&self, source: &Arc<dyn Source>) -> bool {
        self.parts.load().has(source)
    }

    /// Reports a source to the task that makes snapshots, if the present snapshot does not have its lists.
    pub(crate) fn report_change(&self, source: &Arc<dyn Source>) {
        let parts = self.parts.load();
        let index = parts.sources.iter().position(|known| Arc::ptr_eq(known, source));
        let seen = index.and_then(|index| self.snapshot.load().source_revisions.get(index).copied());
        let catalogue = source.snapshot();
        // The end of the recall makes a snapshot of all kept lists.
        if catalogue.is_kept && self.n_recalling.load(Ordering::SeqCst) > 0 {
            return;
        }
        // If the parts were replaced in the meantime, the replacement makes a new snapshot as well.
        if seen != Some(catalogue.revision) {
            self.source_changes.send_replace(());
        }
    }

    /// Removes the state of servers and hosts that are no longer in the configuration.
    fn forget_upstreams(&self, parts: &Parts, snapshot: &Snapshot) {
        let tools = Feature::ALL
            .iter()
            .copied()
            .flat_map(|feature| snapshot.list(feature));
        let states = tools.map(|tool| tool.state()).chain(snapshot.retained.values());
        let mut names: HashSet<&str> = states
            .filter_map(|state| state.upstream())
            .map(|upstream| &**upstream.name())
            .collect();
        names.extend(parts.sources.iter().map(|source| source.name()));
        let mut upstreams = self.upstreams.lock();
        upstreams.retain(|name, _| names.contains(&**name));
    }

    /// Returns the state of the upstream of this name.
    pub(crate) fn upstream(&self, name: Arc<str>) -> Arc<UpstreamState> {
        let mut upstreams = self.upstreams.lock();
        upstreams
            .entry(name)
            .or_insert_with_key(|name| Arc::new(UpstreamState::new(name.clone())))
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
