//! Snapshots for single clients: a source may offer a client other tools than everyone else.

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
    Registry, Snapshot,
    registry::{Cause, Parts, Shared},
    resolve::Resolver,
    snapshot::key,
};

/// The snapshots of clients that see other tools than everyone else.
#[derive(Default)]
pub(crate) struct ClientSnapshots {
    /// Whether any source ever had lists for single clients: looked at by every call.
    is_used: AtomicBool,
    /// The names of those sources.
    sources: Mutex<HashSet<Arc<str>>>,
    resolved: Mutex<HashMap<ClientIdentity, Resolved>>,
    /// The state of each tool that only clients' own lists have: all clients share it, as they share that of any tool.
    states: Mutex<HashMap<Key, Weak<ToolState>>>,
    n_resolved: AtomicU64,
}

/// The feature of a tool, and what it is found by.
type Key = (Feature, Arc<str>);

/// The snapshot of one client, and the lists that it was made of.
struct Resolved {
    base: Arc<Snapshot>,
    own: Own,
    snapshot: Arc<Snapshot>,
}

/// The lists of a client by their sources.
type Own = Vec<(Arc<dyn Source>, Arc<Catalogue>)>;

/// The number of clients whose snapshots are kept. A snapshot that is dropped is resolved again when it is needed.
const MAX_CLIENTS: usize = 256;

impl ClientSnapshots {
    /// Notes that a source may have lists for single clients.
    pub(crate) fn note(&self, source: &Arc<str>) {
        lock(&self.sources).insert(Arc::clone(source));
        self.is_used.store(true, Ordering::Release);
    }

    fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// The state of a tool that is on no shared list.
    pub(crate) fn state_of(&self, key: &(Feature, Arc<str>)) -> Option<Arc<ToolState>> {
        match self.is_used() {
            true => lock(&self.states).get(key).and_then(Weak::upgrade),
            false => None,
        }
    }

    fn known(&self, client: &ClientIdentity, base: &Arc<Snapshot>, own: &Own) -> Option<Arc<Snapshot>> {
        let resolved = lock(&self.resolved);
        let known = resolved.get(client)?;
        let is_same = Arc::ptr_eq(&known.base, base)
            && known.own.len() == own.len()
            && known
                .own
                .iter()
                .zip(own)
                .all(|(one, other)| Arc::ptr_eq(&one.0, &other.0) && Arc::ptr_eq(&one.1, &other.1));
        is_same.then(|| known.snapshot.clone())
    }

    fn keep(&self, client: &ClientIdentity, resolved: Resolved) {
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
            // Of those that were made of older lists first.
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
        .into_iter()
        .flat_map(|feature| snapshot.list(feature));
    all.map(|tool| ((tool.descriptor().feature, key(tool.descriptor())), tool))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

impl Registry {
    /// The snapshot that this client sees: of every source that has lists for this client alone, those; of every other
    /// source, the same as [`Registry::snapshot`]. Where two sources have one of the same name, the order of the sources
    /// decides as everywhere.
    #[must_use]
    pub fn snapshot_for(&self, client: &ClientIdentity) -> Arc<Snapshot> {
        let clients = &self.0.clients;
        if !clients.is_used() {
            return self.snapshot();
        }
        let own = self.own_lists(client);
        let base = self.snapshot();
        if own.is_empty() {
            lock(&clients.resolved).remove(client);
            return base;
        }
        if let Some(known) = clients.known(client, &base, &own) {
            return known;
        }
        let (base, mut snapshot) = self.resolved_with(&own);
        snapshot.scope = clients.n_resolved.fetch_add(1, Ordering::Relaxed) + 1;
        snapshot.revision = base.revision;
        for feature in Feature::ALL {
            snapshot.shelf_mut(feature).revision = base.shelf(feature).revision;
        }
        let snapshot = Arc::new(snapshot);
        let resolved = Resolved {
            base,
            own,
            snapshot: snapshot.clone(),
        };
        clients.keep(client, resolved);
        snapshot
    }

    /// The tool of this name that the client sees, if it is known now. `client` is called only if any source has lists for
    /// single clients.
    #[must_use]
    pub fn get_for(&self, name: &str, client: impl FnOnce() -> ClientIdentity) -> Option<Arc<Tool>> {
        match self.0.clients.is_used() {
            true => self.snapshot_for(&client()).get(name).cloned(),
            false => self.get(name),
        }
    }

    /// The tool of this name that the client sees, if it is known now and no [`Registry::confirm`] is due. `client` is called
    /// only if any source has lists for single clients.
    #[must_use]
    pub fn get_confirmed_for(&self, name: &str, client: impl FnOnce() -> ClientIdentity) -> Option<Arc<Tool>> {
        match self.0.clients.is_used() {
            true => self.snapshot_for(&client()).get_confirmed(name),
            false => self.get_confirmed(name),
        }
    }

    /// Loads sources as [`Registry::load_within`], and returns the snapshot that this client sees then.
    pub async fn load_within_for(&self, client: &ClientIdentity, wait: Duration) -> Arc<Snapshot> {
        self.load_within(wait).await;
        self.refresh_for(client).await;
        self.snapshot_for(client)
    }

    /// Loads every source, as [`Registry::load`], and returns the snapshot that this client sees then.
    pub async fn load_for(&self, client: &ClientIdentity) -> Arc<Snapshot> {
        self.load().await;
        self.refresh_for(client).await;
        self.snapshot_for(client)
    }

    /// Tools that some client sees and that are not in the shared snapshot.
    #[must_use]
    pub fn client_tools(&self) -> Vec<Arc<Tool>> {
        let base = self.snapshot();
        let resolved = lock(&self.0.clients.resolved);
        let of_clients = resolved.values().flat_map(|known| tools(&known.snapshot));
        let own = of_clients.filter(|((feature, key), _)| base.find(*feature, key).is_none());
        own.map(|(_, tool)| tool.clone()).collect()
    }

    /// Waits for lists of the client's own that are being read again.
    pub(crate) async fn refresh_for(&self, client: &ClientIdentity) {
        if !self.0.clients.is_used() {
            return;
        }
        let sources = self.sources_with_own_lists();
        join_all(sources.iter().map(|source| source.refresh_for(client))).await;
    }

    fn own_lists(&self, client: &ClientIdentity) -> Own {
        let sources = self.sources_with_own_lists().into_iter();
        let own = sources.filter_map(|source| {
            let lists = source.snapshot_for(client)?;
            Some((source, lists))
        });
        own.collect()
    }

    fn sources_with_own_lists(&self) -> Vec<Arc<dyn Source>> {
        let names = lock(&self.0.clients.sources);
        let mut sources = self.sources();
        sources.retain(|source| names.contains(source.name()));
        sources
    }

    /// Resolves the tools of all sources, with these lists in the place of those that their sources share.
    fn resolved_with(&self, own: &Own) -> (Arc<Snapshot>, Snapshot) {
        self.resolve_with(|source| {
            let own = own.iter().find(|(known, _)| Arc::ptr_eq(known, source));
            own.map_or_else(|| source.snapshot(), |(_, lists)| lists.clone())
        })
    }
}

impl Registry {
    /// Resolves the lists that `list` gives for each source into a snapshot beside the present one, and returns both.
    fn resolve_with(&self, list: impl Fn(&Arc<dyn Source>) -> Arc<Catalogue>) -> (Arc<Snapshot>, Snapshot) {
        let shared = &*self.0;
        let _guard = shared.resolving.lock();
        let parts = shared.parts.load_full();
        let before = shared.snapshot.load_full();
        let sources = parts.sources.iter();
        let catalogues: Vec<_> = sources.map(|source| (source.name(), list(source))).collect();
        let is_renamed = |source: &str, name: &str| parts.is_renamed(source, name);
        let resolver = Self::resolver(shared, &parts, &before, Cause::Sources, &is_renamed);
        let snapshot = resolver.resolve(&catalogues);
        (before, snapshot)
    }

    pub(crate) fn resolver<'a>(
        shared: &'a Shared,
        parts: &'a Parts,
        before: &'a Snapshot,
        cause: Cause,
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
            keeps_tools: !matches!(cause, Cause::Parts { .. }),
            lists_changed: matches!(cause, Cause::Admission | Cause::Parts { lists_changed: true }),
        }
    }
}
