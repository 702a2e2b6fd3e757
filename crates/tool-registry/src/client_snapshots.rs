//! Snapshots for single clients: a source may offer a client other tools than all others.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use parking_lot::{Mutex, MutexGuard};
use tool_core::{Catalogue, ClientIdentity, Feature, Source, Tool, ToolState};

use crate::{
    Registry, Snapshot, WithheldDefinition,
    look_alikes::Looks,
    registry::{Parts, ResolveReason, Shared},
    resolve::{CommonSettings, Resolver},
    snapshot::key,
};

/// Snapshots of clients that see other tools than all others.
#[derive(Default)]
pub(crate) struct ClientSnapshots {
    /// `true` once any source had lists for single clients. Checked by every call, so that others pay nothing.
    is_used: AtomicBool,
    /// Names of those sources.
    sources: Mutex<HashSet<Arc<str>>>,
    resolved: Mutex<HashMap<ClientIdentity, ClientSnapshot>>,
    /// State of each tool that is only on lists of single clients. All clients share it, as they share that of any tool.
    states: Mutex<HashMap<Key, Weak<ToolState>>>,
    n_resolved: AtomicU64,
}

/// Feature of a tool, and its key: see [`key`].
type Key = (Feature, Arc<str>);

/// Snapshot of one client, with the lists that it was made from.
struct ClientSnapshot {
    base: Arc<Snapshot>,
    lists: ClientLists,
    snapshot: Arc<Snapshot>,
}

/// Lists for a single client, with their sources.
type ClientLists = Vec<(Arc<dyn Source>, Arc<Catalogue>)>;

/// Maximum number of clients whose snapshots are kept. An evicted snapshot is resolved again when it is needed.
const MAX_CLIENTS: usize = 256;

impl ClientSnapshots {
    /// Records that a source may have lists for single clients.
    pub(crate) fn add_source(&self, source: &Arc<str>) {
        lock(&self.sources).insert(Arc::clone(source));
        self.is_used.store(true, Ordering::Release);
    }

    fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// Returns the withheld definitions of all kept snapshots.
    pub(crate) fn withheld(&self) -> Vec<WithheldDefinition> {
        if !self.is_used() {
            return Vec::new();
        }
        let resolved = lock(&self.resolved);
        let snapshots = resolved.values().map(|known| &known.snapshot);
        snapshots
            .flat_map(|snapshot| snapshot.withheld().to_vec())
            .collect()
    }

    /// Returns the state of a tool that is on no shared list.
    pub(crate) fn state_of(&self, key: &(Feature, Arc<str>)) -> Option<Arc<ToolState>> {
        match self.is_used() {
            true => lock(&self.states).get(key).and_then(Weak::upgrade),
            false => None,
        }
    }

    /// Returns the snapshot of a client if it was made from this base and these lists.
    fn get(
        &self,
        client: &ClientIdentity,
        base: &Arc<Snapshot>,
        lists: &ClientLists,
    ) -> Option<Arc<Snapshot>> {
        let resolved = lock(&self.resolved);
        let known = resolved.get(client)?;
        let is_same = Arc::ptr_eq(&known.base, base)
            && known.lists.len() == lists.len()
            && known
                .lists
                .iter()
                .zip(lists)
                .all(|(one, other)| Arc::ptr_eq(&one.0, &other.0) && Arc::ptr_eq(&one.1, &other.1));
        is_same.then(|| known.snapshot.clone())
    }

    fn insert(&self, client: &ClientIdentity, resolved: ClientSnapshot) {
        let mut states = lock(&self.states);
        states.retain(|_, state| state.strong_count() > 0);
        for (key, tool) in tools(&resolved.snapshot) {
            if resolved.base.find(key.0, &key.1).is_none() {
                states.insert(key, Arc::downgrade(tool.state()));
            }
        }
        drop(states);
        let mut all = lock(&self.resolved);
        if all.len() >= MAX_CLIENTS && !all.contains_key(client) {
            // Evicts the snapshot that was made first.
            let oldest = all.iter().min_by_key(|(_, known)| known.snapshot.scope);
            if let Some(oldest) = oldest.map(|(oldest, _)| oldest.clone()) {
                all.remove(&oldest);
            }
        }
        all.insert(client.clone(), resolved);
    }
}

fn tools(snapshot: &Snapshot) -> impl Iterator<Item = ((Feature, Arc<str>), &Arc<Tool>)> {
    let all = Feature::ALL
        .iter()
        .copied()
        .flat_map(|feature| snapshot.list(feature));
    all.map(|tool| ((tool.descriptor().feature, key(tool.descriptor())), tool))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

impl Registry {
    /// Returns the snapshot that this client sees. Sources with lists for this client contribute those, all others the same as
    /// in [`Registry::snapshot`]. The order of the sources decides between equal names, as in the shared snapshot.
    #[must_use]
    pub fn snapshot_for(&self, client: &ClientIdentity) -> Arc<Snapshot> {
        let clients = &self.0.clients;
        if !clients.is_used() {
            return self.snapshot();
        }
        let lists = self.client_lists(client);
        let base = self.snapshot();
        if lists.is_empty() {
            lock(&clients.resolved).remove(client);
            return base;
        }
        if let Some(known) = clients.get(client, &base, &lists) {
            return known;
        }
        let (base, mut snapshot) = self.resolve_for_client(&lists);
        snapshot.scope = clients.n_resolved.fetch_add(1, Ordering::Relaxed) + 1;
        snapshot.revision = base.revision;
        for &feature in Feature::ALL {
            snapshot.feature_list_mut(feature).revision = base.feature_list(feature).revision;
        }
        let snapshot = Arc::new(snapshot);
        if !snapshot.withheld().is_empty() {
            let known: Vec<_> = lock(&clients.resolved)
                .values()
                .map(|known| known.snapshot.clone())
                .collect();
            let known: Vec<_> = known.iter().map(|known| &**known).chain([&*base]).collect();
            self.0.report_withheld(&known, &snapshot);
        }
        let resolved = ClientSnapshot {
            base,
            lists,
            snapshot: snapshot.clone(),
        };
        clients.insert(client, resolved);
        snapshot
    }

    /// Returns the tool of this name from the client's present snapshot. `client` is called only if any source has lists for
    /// single clients.
    #[must_use]
    pub fn get_for(&self, name: &str, client: impl FnOnce() -> ClientIdentity) -> Option<Arc<Tool>> {
        match self.0.clients.is_used() {
            true => self.snapshot_for(&client()).get(name).cloned(),
            false => self.get(name),
        }
    }

    /// Returns the tool of this name from the client's present snapshot, or `None` if it still needs [`Registry::confirm`].
    /// `client` is called only if any source has lists for single clients.
    #[must_use]
    pub fn get_confirmed_for(
        &self,
        name: &str,
        client: impl FnOnce() -> ClientIdentity,
    ) -> Option<Arc<Tool>> {
        match self.0.clients.is_used() {
            true => self.snapshot_for(&client()).get_confirmed(name),
            false => self.get_confirmed(name),
        }
    }

    /// Loads sources as [`Registry::load_within`] does, and returns the snapshot that this client sees after that.
    ///
    /// # Cancellation
    /// As for [`Registry::load_within`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn load_within_for(&self, client: &ClientIdentity, wait: Duration) -> Arc<Snapshot> {
        self.load_within(wait).await;
        self.refresh_for(client).await;
        self.snapshot_for(client)
    }

    /// Loads every source as [`Registry::load`] does, and returns the snapshot that this client sees after that.
    ///
    /// # Cancellation
    /// As for [`Registry::load`].
    pub async fn load_for(&self, client: &ClientIdentity) -> Arc<Snapshot> {
        self.load().await;
        self.refresh_for(client).await;
        self.snapshot_for(client)
    }

    /// Returns the tools that some client sees and that are not in the shared snapshot.
    #[must_use]
    pub fn client_tools(&self) -> Vec<Arc<Tool>> {
        let base = self.snapshot();
        let resolved = lock(&self.0.clients.resolved);
        let of_clients = resolved.values().flat_map(|known| tools(&known.snapshot));
        let own = of_clients.filter(|((feature, key), _)| base.find(*feature, key).is_none());
        own.map(|(_, tool)| tool.clone()).collect()
    }

    /// Waits for lists of this client that are being read again.
    pub(crate) async fn refresh_for(&self, client: &ClientIdentity) {
        if !self.0.clients.is_used() {
            return;
        }
        let sources = self.sources_with_client_lists();
        join_all(sources.iter().map(|source| source.refresh_for(client))).await;
    }

    fn client_lists(&self, client: &ClientIdentity) -> ClientLists {
        let sources = self.sources_with_client_lists().into_iter();
        let lists = sources.filter_map(|source| {
            let lists = source.snapshot_for(client)?;
            Some((source, lists))
        });
        lists.collect()
    }

    fn sources_with_client_lists(&self) -> Vec<Arc<dyn Source>> {
        let names = lock(&self.0.clients.sources);
        let mut sources = self.sources();
        sources.retain(|source| names.contains(source.name()));
        sources
    }

    /// Resolves the tools of all sources, with these lists instead of the shared ones of their sources.
    fn resolve_for_client(&self, lists: &ClientLists) -> (Arc<Snapshot>, Snapshot) {
        self.resolve_with(|source| {
            let own = lists.iter().find(|(known, _)| Arc::ptr_eq(known, source));
            own.map_or_else(|| source.snapshot(), |(_, lists)| lists.clone())
        })
    }
}

impl Registry {
    /// Resolves the lists that `list` returns for each source. Returns the present shared snapshot, and the new one.
    fn resolve_with(&self, list: impl Fn(&Arc<dyn Source>) -> Arc<Catalogue>) -> (Arc<Snapshot>, Snapshot) {
        let shared = &*self.0;
        let _guard = shared.resolving.lock();
        let parts = shared.parts.load_full();
        let before = shared.snapshot.load_full();
        let sources = parts.sources.iter();
        let catalogues: Vec<_> = sources.map(|source| (source.name(), list(source))).collect();
        let is_renamed = |source: &str, name: &str| parts.is_renamed(source, name);
        let resolver = Self::resolver(shared, &parts, &before, ResolveReason::Sources, &is_renamed);
        let snapshot = resolver.resolve(&catalogues);
        (before, snapshot)
    }

    pub(crate) fn resolver<'a>(
        shared: &'a Shared,
        parts: &'a Parts,
        before: &'a Snapshot,
        reason: ResolveReason,
        is_renamed: &'a (dyn Fn(&str, &str) -> bool + Sync + 'a),
    ) -> Resolver<'a> {
        Resolver {
            executors: &parts.executors,
            defaults: parts.defaults.clone(),
            upstream_settings: &parts.upstream_settings,
            generation: parts.generation,
            shared,
            namespaces: &parts.namespaces,
            is_renamed,
            before,
            pins: &parts.pins,
            common_settings: CommonSettings::default(),
            looks: Looks::default(),
            reuses_tools: !matches!(reason, ResolveReason::Parts { .. }),
            lists_changed: matches!(
                reason,
                ResolveReason::Admission | ResolveReason::Parts { lists_changed: true }
            ),
        }
    }
}
