use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::watch;
use tool_core::{
    Catalogue, ClientIdentity, Descriptor, Executor, Feature, ListWarning, OnUpdate, PrepareError, Settings,
    Source, SourceState, SourceStatus, Target, Tool, Trust, Update, UpstreamState,
};

use crate::{
    Snapshot, clients::ClientSnapshots, first_loads::FirstLoads, follow, log::log_news,
    namespaces::Namespaces,
};

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
    pub(crate) parts: ArcSwap<Parts>,
    n_replaced: AtomicU64,
    /// Whether what the sources add or lose is followed.
    follows: AtomicBool,
    /// Where news of resources goes: also those of sources to come.
    tell: Mutex<Vec<OnUpdate>>,
    /// All that there are, by the last configuration: what is known of one is not lost when its tools go and come again.
    upstreams: Mutex<HashMap<Arc<str>, Arc<UpstreamState>>>,
    pub(crate) snapshot: ArcSwap<Snapshot>,
    pub(crate) clients: ClientSnapshots,
    /// Held while a new snapshot is made, so that an older one never replaces a newer one.
    pub(crate) resolving: Mutex<()>,
    /// The loads of sources of which no list is known yet.
    pub(crate) first_loads: FirstLoads,
    /// The generation of the parts whose sources were all asked for kept lists, plus 1.
    recalled: AtomicU64,
    /// The number of recalls that run: kept lists of single sources wait for their end.
    pub(crate) n_recalling: AtomicUsize,
    revision: watch::Sender<u64>,
}

/// What resolution goes by, as one: all of it changes at once or none.
pub(crate) struct Parts {
    pub(crate) sources: Vec<Arc<dyn Source>>,
    pub(crate) executors: HashMap<String, Arc<dyn Executor>>,
    pub(crate) defaults: Settings,
    pub(crate) upstream_settings: HashMap<String, Settings>,
    pub(crate) namespaces: Namespaces,
    /// How many there were before.
    pub(crate) generation: u64,
}

impl Parts {
    /// Returns `true` if the operator gave a source's tool of this name the name itself.
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
            generation: 0,
        }
    }
}

/// Why a new snapshot is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A source may have changed.
    Sources,
    /// Other rules say who may see what.
    Admission,
    /// The parts are others: every tool is prepared anew.
    Parts {
        /// Whether lists count as changed that hold the same.
        lists_changed: bool,
    },
}

impl Registry {
    /// A registry of these sources. What they know already is resolved at once; nothing is started.
    #[must_use]
    pub fn new(parts: RegistryParts) -> Self {
        let registry = Self(Arc::new(Shared {
            parts: ArcSwap::from_pointee(parts.into()),
            n_replaced: AtomicU64::new(0),
            follows: AtomicBool::new(false),
            tell: Mutex::default(),
            upstreams: Mutex::default(),
            snapshot: ArcSwap::default(),
            clients: ClientSnapshots::default(),
            resolving: Mutex::new(()),
            first_loads: FirstLoads::default(),
            recalled: AtomicU64::new(0),
            n_recalling: AtomicUsize::new(0),
            revision: watch::Sender::new(0),
        }));
        let shared = Arc::downgrade(&registry.0);
        registry.on_update(
            &(Arc::new(move |update: &Update| {
                if let Update::ClientLists { source, .. } = update
                    && let Some(shared) = shared.upgrade()
                {
                    shared.clients.note(source);
                }
            }) as OnUpdate),
        );
        registry.refresh();
        registry
    }

    /// Puts other parts in the place of the present ones, as one step: a call finds either the tools of before or those
    /// of after. What layers know of a tool is kept if it has the same name and is run by the same upstream, also while the
    /// source of that name has not read its lists. A source that is in both stays as it is; one that is not in the new
    /// parts is let go, and calls that it still runs end in their own time.
    ///
    /// `lists_changed` says that lists count as changed even if they hold the same: who may see what has changed.
    pub fn replace(&self, parts: RegistryParts, lists_changed: bool) {
        let generation = self.0.n_replaced.fetch_add(1, Ordering::Relaxed) + 1;
        let parts = Arc::new(Parts {
            generation,
            ..Parts::from(parts)
        });
        let before = self.0.parts.swap(parts.clone());
        let is_new = |source: &&Arc<dyn Source>| !before.has(source);
        for source in parts.sources.iter().filter(is_new) {
            for tell in &*self.0.tell.lock() {
                source.on_update(Arc::clone(tell));
            }
        }
        self.resolve(Cause::Parts { lists_changed });
        if self.0.follows.load(Ordering::Relaxed) {
            parts
                .sources
                .iter()
                .filter(is_new)
                .for_each(|source| self.follow_one(source));
        }
    }

    /// Counts all lists as changed though they hold the same: who may see what has changed.
    pub fn mark_lists_changed(&self) {
        self.resolve(Cause::Admission);
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

    /// The tool of this name, if it is known now and no [`Registry::confirm`] is due.
    #[must_use]
    pub fn get_confirmed(&self, name: &str) -> Option<Arc<Tool>> {
        self.0.snapshot.load().get_confirmed(name)
    }

    /// The tool of this name. Sources that may hold it and are not loaded yet are loaded first. It may come from a list that
    /// was kept from an earlier run: see [`Registry::confirm`].
    pub async fn find(&self, name: &str) -> Option<Arc<Tool>> {
        match self.get(name) {
            Some(tool) => Some(tool),
            None => {
                self.find_in(None, Feature::Tool, name, |snapshot| snapshot.get(name).cloned())
                    .await
            }
        }
    }

    /// The prompt of this name, see [`Registry::find`].
    pub async fn find_prompt(&self, name: &str) -> Option<Arc<Tool>> {
        let look = |snapshot: &Snapshot| snapshot.find(Feature::Prompt, name).cloned();
        self.find_in(None, Feature::Prompt, name, look).await
    }

    /// The resource of this URI, or what stands for it, see [`Snapshot::resource`] and [`Registry::find`].
    pub async fn find_resource(&self, uri: &str) -> Option<Target> {
        self.find_in(None, Feature::Resource, uri, |snapshot| snapshot.resource(uri))
            .await
    }

    /// The resource template that is written like this, see [`Registry::find`].
    pub async fn find_template(&self, uri_template: &str) -> Option<Arc<Tool>> {
        let look = |snapshot: &Snapshot| snapshot.find(Feature::ResourceTemplate, uri_template).cloned();
        self.find_in(None, Feature::ResourceTemplate, uri_template, look)
            .await
    }

    /// What `look` finds for a client, or for everyone without one. Sources that may hold what goes by this name or URI
    /// and are not loaded yet are loaded first.
    pub async fn find_in<T>(
        &self,
        client: Option<&ClientIdentity>,
        feature: Feature,
        key: &str,
        look: impl Fn(&Snapshot) -> Option<T>,
    ) -> Option<T> {
        // Nothing of the snapshot is held while sources are loaded.
        let snapshot = || client.map_or_else(|| self.snapshot(), |client| self.snapshot_for(client));
        if let Some(found) = look(&snapshot()) {
            return Some(found);
        }
        self.recall().await;
        if let Some(found) = look(&snapshot()) {
            return Some(found);
        }
        self.load_those(|source| source.may_hold(feature, key)).await;
        if let Some(client) = client {
            self.refresh_for(client).await;
        }
        look(&snapshot())
    }

    /// Has every source offer the lists that were kept from an earlier run, where it has read none in this one. Starts
    /// nothing.
    pub async fn recall(&self) {
        loop {
            let parts = self.0.parts.load_full();
            let done = parts.generation + 1;
            if self.0.recalled.load(Ordering::Acquire) == done {
                return;
            }
            // One snapshot of all of them, not one for each source that offers its lists.
            let recalling = Recalling::begin(self);
            join_all(parts.sources.iter().map(|source| source.recall())).await;
            drop(recalling);
            self.0.recalled.store(done, Ordering::Release);
        }
    }

    /// Loads the source of a tool, prompt or resource that is known only from an earlier run, and returns whether it was one
    /// of those: then it must be looked up again. Where the source cannot be loaded, its kept lists stay.
    pub async fn confirm(&self, tool: &Tool) -> bool {
        let snapshot = self.snapshot();
        let source = snapshot.kept_source(tool).map(str::to_owned);
        drop(snapshot);
        match source {
            Some(name) => {
                self.load_those(|source| source.name() == name).await;
                true
            }
            None => false,
        }
    }

    /// Loads the sources that are wanted, all at once. Whoever waits for one that is replaced meanwhile waits for the one in
    /// its place.
    async fn load_those(&self, is_wanted: impl Fn(&dyn Source) -> bool) {
        loop {
            let parts = self.0.parts.load_full();
            let wanted = parts.sources.iter().filter(|source| is_wanted(&***source));
            let loads: Vec<_> = wanted.map(|source| source.load()).collect();
            join_all(loads).await;
            if Arc::ptr_eq(&parts, &self.0.parts.load()) {
                break;
            }
        }
        self.refresh();
    }

    /// Loads every source that is not loaded yet, all at once, and returns what is known then. A source that fails
    /// is left out: see [`Registry::status`].
    pub async fn load(&self) -> Arc<Snapshot> {
        self.recall().await;
        self.load_those(|_| true).await;
        self.snapshot()
    }

    /// Where tools come from, in their order.
    #[must_use]
    pub fn sources(&self) -> Vec<Arc<dyn Source>> {
        self.0.parts.load().sources.clone()
    }

    /// What several tools have in common that are run by the server or host of this name.
    #[must_use]
    pub fn upstream(&self, name: impl Into<Arc<str>>) -> Arc<UpstreamState> {
        self.0.upstream(name.into())
    }

    /// How each source is, in their order.
    #[must_use]
    pub fn status(&self) -> Vec<(String, SourceStatus)> {
        let parts = self.0.parts.load();
        parts
            .sources
            .iter()
            .map(|source| (source.name().to_owned(), source.status()))
            .collect()
    }

    /// The source that may have a tool or prompt of this name, or a resource of this URI, and has failed or was stopped,
    /// with how it is: what to tell someone who asks for what is missing with its server.
    #[must_use]
    pub fn find_failed_source(&self, feature: Feature, name: &str) -> Option<(String, SourceStatus)> {
        let parts = self.0.parts.load();
        let mut owners = parts
            .sources
            .iter()
            .filter(|source| source.may_hold(feature, name));
        owners.find_map(|source| {
            let status = source.status();
            let is_missing = matches!(status.state, SourceState::Failed(_) | SourceState::Stopped);
            is_missing.then(|| (source.name().to_owned(), status))
        })
    }

    /// What is to be said of the executor settings that operators wrote, by the tool's name: see [`Executor::warnings`].
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

    /// Warnings about what sources list now, each with the source that it is about.
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

    /// The source that this comes from, if it still has it.
    #[must_use]
    pub fn find_source(&self, tool: &Tool) -> Option<Arc<dyn Source>> {
        self.source_where(tool, |source| source.snapshot())
    }

    /// The source that has this on the lists which the client sees.
    #[must_use]
    pub fn find_source_for(&self, tool: &Tool, client: &ClientIdentity) -> Option<Arc<dyn Source>> {
        let lists = |source: &dyn Source| source.snapshot_for(client).unwrap_or_else(|| source.snapshot());
        self.source_where(tool, lists)
    }

    fn source_where(
        &self,
        tool: &Tool,
        lists: impl Fn(&dyn Source) -> Arc<Catalogue>,
    ) -> Option<Arc<dyn Source>> {
        let is_it =
            |known: &Arc<Descriptor>| Arc::ptr_eq(known, tool.descriptor()) || known == tool.descriptor();
        let parts = self.0.parts.load();
        let source = parts.sources.iter().find(|source| {
            let catalogue = lists(&***source);
            catalogue.tools.iter().chain(&catalogue.others).any(is_it)
        });
        source.cloned()
    }

    /// Hands what every source tells of its own accord to this, also those that [`Registry::replace`] adds later: see
    /// [`Source::on_update`].
    pub fn on_update(&self, tell: &OnUpdate) {
        let mut all = self.0.tell.lock();
        all.push(Arc::clone(tell));
        for source in &self.0.parts.load().sources {
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
        self.0.follows.store(true, Ordering::Relaxed);
        for source in &self.0.parts.load().sources {
            self.follow_one(source);
        }
    }

    fn follow_one(&self, source: &Arc<dyn Source>) {
        let registry = Arc::downgrade(&self.0);
        tokio::spawn(follow::follow(registry, source.clone(), self.changes()));
    }

    /// Makes a new snapshot if a source has changed.
    pub(crate) fn refresh(&self) {
        self.resolve(Cause::Sources);
    }

    /// Makes a new snapshot if this source has changed: cheaper than to look at all of many.
    pub(crate) fn refresh_source(&self, source: &Arc<dyn Source>) {
        let parts = self.0.parts.load();
        let place = parts.sources.iter().position(|known| Arc::ptr_eq(known, source));
        let seen = place.and_then(|place| self.0.snapshot.load().seen.get(place).copied());
        let catalogue = source.snapshot();
        // The end of a recall makes a new snapshot.
        if catalogue.is_kept && self.0.n_recalling.load(Ordering::SeqCst) > 0 {
            return;
        }
        // Whoever has replaced the parts makes a new snapshot as well.
        if seen != Some(catalogue.revision) {
            self.refresh();
        }
    }

    fn resolve(&self, cause: Cause) {
        let shared = &*self.0;
        let _guard = shared.resolving.lock();
        let parts = shared.parts.load_full();
        let catalogues: Vec<_> = parts
            .sources
            .iter()
            .map(|source| (source.name(), source.snapshot()))
            .collect();
        let before = shared.snapshot.load_full();
        let unchanged = cause == Cause::Sources
            && before.revision > 0
            && before
                .seen
                .iter()
                .eq(catalogues.iter().map(|(_, catalogue)| &catalogue.revision));
        if unchanged {
            return;
        }
        let is_renamed = |source: &str, name: &str| parts.is_renamed(source, name);
        let resolver = Self::resolver(shared, &parts, &before, cause, &is_renamed);
        let snapshot = resolver.resolve(&catalogues);
        log_news(&before, &snapshot);
        if let Cause::Parts { .. } = cause {
            shared.forget_upstreams(&parts, &snapshot);
        }
        let revision = snapshot.revision;
        shared.snapshot.store(Arc::new(snapshot));
        shared.revision.send_replace(revision);
    }
}

impl Parts {
    fn has(&self, source: &Arc<dyn Source>) -> bool {
        self.sources.iter().any(|known| Arc::ptr_eq(known, source))
    }
}

impl Shared {
    /// Whether this is still one of the sources.
    pub(crate) fn has(&self, source: &Arc<dyn Source>) -> bool {
        self.parts.load().has(source)
    }

    /// Forgets what is known of servers and hosts that the configuration does not have any more.
    fn forget_upstreams(&self, parts: &Parts, snapshot: &Snapshot) {
        let shelves = Feature::ALL
            .into_iter()
            .flat_map(|feature| snapshot.list(feature));
        let states = shelves.map(|tool| tool.state()).chain(snapshot.awaited.values());
        let mut names: HashSet<&str> = states
            .filter_map(|state| state.upstream())
            .map(|upstream| &**upstream.name())
            .collect();
        names.extend(parts.sources.iter().map(|source| source.name()));
        let mut upstreams = self.upstreams.lock();
        upstreams.retain(|name, _| names.contains(&**name));
    }

    /// What is known of the upstream of this name.
    pub(crate) fn upstream(&self, name: Arc<str>) -> Arc<UpstreamState> {
        let mut upstreams = self.upstreams.lock();
        upstreams
            .entry(name)
            .or_insert_with_key(|name| Arc::new(UpstreamState::new(name.clone())))
            .clone()
    }
}

/// A recall that runs. Its end makes a snapshot of all lists, also where the recall is given up.
struct Recalling<'a>(&'a Registry);

impl<'a> Recalling<'a> {
    fn begin(registry: &'a Registry) -> Self {
        registry.0.n_recalling.fetch_add(1, Ordering::SeqCst);
        Self(registry)
    }
}

impl Drop for Recalling<'_> {
    fn drop(&mut self) {
        // First: what is passed over until then is in the snapshot that is made now.
        self.0.0.n_recalling.fetch_sub(1, Ordering::SeqCst);
        self.0.refresh();
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
