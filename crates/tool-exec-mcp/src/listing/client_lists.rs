use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tool_core::{Catalogue, Descriptor, Feature, Update};

use super::{
    EntryKey,
    entries::{DescribedList, descriptors, replace_lists},
};
use crate::{connection::PoolKey, notifications::Notifier};

/// Lists of dedicated connections. A client sees the lists of its dedicated connections instead of the shared ones for
/// as long as one of them is open.
///
/// A client with several connections sees the union of their lists. Of two entries with one name, that of the older
/// connection counts.
pub(crate) struct ClientLists {
    source: Arc<str>,
    shared: watch::Receiver<Arc<Catalogue>>,
    notifier: Arc<Notifier>,
    clients: Mutex<HashMap<PoolKey, ListsOfClient>>,
}

/// Lists of one client.
#[derive(Default)]
struct ListsOfClient {
    /// Lists of each connection, in the order of opening.
    by_connection: BTreeMap<u64, Arc<Catalogue>>,
    union: Arc<Catalogue>,
    /// Revision of the shared lists that the union was last compared with, and `true` if they were equal.
    compared: Option<(u64, bool)>,
}

impl ClientLists {
    pub(crate) fn new(
        source: &str,
        shared: watch::Receiver<Arc<Catalogue>>,
        notifier: Arc<Notifier>,
    ) -> Arc<Self> {
        Arc::new(Self {
            source: source.into(),
            shared,
            notifier,
            clients: Mutex::default(),
        })
    }

    /// Returns the lists of this client, or `None` if it sees the shared ones.
    pub(crate) fn get(&self, client: &PoolKey) -> Option<Arc<Catalogue>> {
        let shared = self.shared.borrow().clone();
        let mut clients = self.clients();
        let lists = clients.get_mut(client)?;
        let is_same = match lists.compared {
            Some((revision, is_same)) if revision == shared.revision => is_same,
            _ => differences(&lists.union, &shared).is_empty(),
        };
        lists.compared = Some((shared.revision, is_same));
        (!is_same).then(|| lists.union.clone())
    }

    /// Announces that a connection for this client is being opened.
    pub(crate) fn announce(&self, client: &PoolKey) {
        self.notify(client, Vec::new());
    }

    /// Replaces these lists of a connection.
    pub(crate) fn publish(
        &self,
        client: &PoolKey,
        connection: u64,
        replaced: HashMap<Feature, DescribedList>,
    ) -> Arc<Catalogue> {
        let shared = self.shared.borrow().clone();
        let mut clients = self.clients();
        let lists = clients.entry(client.clone()).or_default();
        let before = lists.visible(&shared);
        // Starts from the shared lists: equal descriptors stay the same objects, and their tools are not resolved
        // again.
        let of_connection = lists.by_connection.get(&connection).unwrap_or(&shared);
        let of_connection = Arc::new(replace_lists(of_connection, replaced));
        lists.by_connection.insert(connection, of_connection.clone());
        lists.rebuild_union(before.revision + 1);
        let changed = differences(&before, &lists.union);
        drop(clients);
        self.notify(client, changed);
        of_connection
    }

    /// Removes the lists of a connection that has ended.
    pub(crate) fn remove_connection(&self, client: &PoolKey, connection: u64) {
        let shared = self.shared.borrow().clone();
        let mut clients = self.clients();
        let Some(lists) = clients.get_mut(client) else {
            return;
        };
        let before = lists.visible(&shared);
        if lists.by_connection.remove(&connection).is_none() {
            return;
        }
        lists.rebuild_union(before.revision + 1);
        let changed = differences(&before, &lists.visible(&shared));
        if lists.by_connection.is_empty() {
            clients.remove(client);
        }
        drop(clients);
        self.notify(client, changed);
    }

    /// Returns `true` if a dedicated connection of the client lists this entry and the shared connection does not.
    pub(crate) fn lists_exclusively(&self, client: &PoolKey, entry: &EntryKey) -> bool {
        let has = |catalogue: &Catalogue| {
            descriptors(catalogue).any(|descriptor| EntryKey::from_descriptor(descriptor) == *entry)
        };
        let lists = self.clients().get(client).map(|lists| lists.union.clone());
        lists.is_some_and(|lists| has(&lists)) && !has(&self.shared.borrow())
    }

    fn notify(&self, client: &PoolKey, changed: Vec<Feature>) {
        self.notifier.notify(&Update::ClientLists {
            source: self.source.clone(),
            clients: client.group(),
            changed,
        });
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<PoolKey, ListsOfClient>> {
        self.clients.lock()
    }
}

impl ListsOfClient {
    /// Returns the lists that the client sees.
    fn visible(&self, shared: &Arc<Catalogue>) -> Arc<Catalogue> {
        let lists = if self.by_connection.is_empty() {
            shared
        } else {
            &self.union
        };
        lists.clone()
    }

    fn rebuild_union(&mut self, revision: u64) {
        self.compared = None;
        let mut catalogues = self.by_connection.values();
        let Some(first) = catalogues.next() else { return };
        let mut union = Catalogue::default();
        union.revision = revision;
        union.tools.clone_from(&first.tools);
        union.others.clone_from(&first.others);
        union.rejected.clone_from(&first.rejected);
        union.warnings.clone_from(&first.warnings);
        let mut seen: HashSet<_> = descriptors(first).map(|descriptor| key(descriptor)).collect();
        for catalogue in catalogues {
            for entry in descriptors(catalogue) {
                match entry.feature {
                    _ if !seen.insert(key(entry)) => {}
                    Feature::Tool => union.tools.push(entry.clone()),
                    _ => union.others.push(entry.clone()),
                }
            }
        }
        self.union = Arc::new(union);
    }
}

fn key(descriptor: &Descriptor) -> (Feature, &str) {
    (descriptor.feature, &descriptor.name)
}

/// Returns the features whose lists differ between two catalogues.
fn differences(one: &Catalogue, other: &Catalogue) -> Vec<Feature> {
    let list = |catalogue, feature| {
        let all = descriptors(catalogue);
        all.filter(move |descriptor: &&Arc<Descriptor>| descriptor.feature == feature)
    };
    let is_same =
        |(one, other): (&Arc<Descriptor>, &Arc<Descriptor>)| Arc::ptr_eq(one, other) || one == other;
    let mut features = Feature::ALL.to_vec();
    features.retain(|&feature| {
        let (first, second) = (list(one, feature), list(other, feature));
        first.clone().count() != second.clone().count() || !first.zip(second).all(is_same)
    });
    features
}
