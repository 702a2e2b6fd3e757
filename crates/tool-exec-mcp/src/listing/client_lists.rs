use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tool_core::{Catalogue, Descriptor, Feature, Update};

use super::{
    EntryKey,
    describe::{DescribedList, replace_lists},
    entry_key::descriptors,
};
use crate::{connection::PoolKey, notifications::Notifier};

/// The lists of the connections that are kept for single clients. A client sees the lists of its own connections instead
/// of the shared ones for as long as one of them is open.
///
/// A client with several connections sees the union of their lists. Of two entries with one name, that of the older
/// connection counts.
pub(crate) struct ClientLists {
    source: Arc<str>,
    shared: watch::Receiver<Arc<Catalogue>>,
    notifier: Arc<Notifier>,
    clients: Mutex<HashMap<PoolKey, ListsOfClient>>,
}

/// The lists of one client.
#[derive(Default)]
struct ListsOfClient {
    /// Those of each connection, by the order in which the connections were opened.
    by_connection: BTreeMap<u64, Arc<Catalogue>>,
    union: Arc<Catalogue>,
    /// The revision of the shared lists that the union was last compared with, and whether it was equal.
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

    /// Returns the lists of this client, `None` where they are the shared ones.
    pub(crate) fn get(&self, client: &PoolKey) -> Option<Arc<Catalogue>> {
        let shared = self.shared.borrow().clone();
        let mut clients = self.clients();
        let own = clients.get_mut(client)?;
        let is_same = match own.compared {
            Some((revision, is_same)) if revision == shared.revision => is_same,
            _ => differences(&own.union, &shared).is_empty(),
        };
        own.compared = Some((shared.revision, is_same));
        (!is_same).then(|| own.union.clone())
    }

    /// Announces that a connection for this client is being opened.
    pub(crate) fn announce(&self, client: &PoolKey) {
        self.tell(client, Vec::new());
    }

    /// Replaces these lists of a connection.
    pub(crate) fn publish(
        &self,
        client: &PoolKey,
        connection: u64,
        lists: HashMap<Feature, DescribedList>,
    ) -> Arc<Catalogue> {
        let shared = self.shared.borrow().clone();
        let mut clients = self.clients();
        let own = clients.entry(client.clone()).or_default();
        let before = own.visible(&shared);
        // Descriptors that are on the shared lists as well are shared, and their tools are not resolved again.
        let of_connection = own.by_connection.get(&connection).unwrap_or(&shared);
        let of_connection = Arc::new(replace_lists(of_connection, lists));
        own.by_connection.insert(connection, of_connection.clone());
        own.rebuild_union(before.revision + 1);
        let changed = differences(&before, &own.union);
        drop(clients);
        self.tell(client, changed);
        of_connection
    }

    /// Forgets the lists of a connection that has ended.
    pub(crate) fn remove_connection(&self, client: &PoolKey, connection: u64) {
        let shared = self.shared.borrow().clone();
        let mut clients = self.clients();
        let Some(own) = clients.get_mut(client) else {
            return;
        };
        let before = own.visible(&shared);
        if own.by_connection.remove(&connection).is_none() {
            return;
        }
        own.rebuild_union(before.revision + 1);
        let changed = differences(&before, &own.visible(&shared));
        if own.by_connection.is_empty() {
            clients.remove(client);
        }
        drop(clients);
        self.tell(client, changed);
    }

    /// Returns `true` if the client has this entry on a list of its own connections and not on the shared ones.
    pub(crate) fn lists_exclusively(&self, client: &PoolKey, entry: &EntryKey) -> bool {
        let has = |catalogue: &Catalogue| {
            descriptors(catalogue).any(|known| EntryKey::from_descriptor(known) == *entry)
        };
        let own = self.clients().get(client).map(|own| own.union.clone());
        own.is_some_and(|own| has(&own)) && !has(&self.shared.borrow())
    }

    fn tell(&self, client: &PoolKey, changed: Vec<Feature>) {
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
    /// What the client sees.
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
        let mut union = Catalogue {
            is_kept: false,
            revision,
            tools: first.tools.clone(),
            others: first.others.clone(),
            rejected: first.rejected.clone(),
            warnings: first.warnings.clone(),
        };
        let mut known: HashSet<_> = descriptors(first).map(|known| key(known)).collect();
        for catalogue in catalogues {
            for entry in descriptors(catalogue) {
                match entry.feature {
                    _ if !known.insert(key(entry)) => {}
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

/// The lists that differ between two catalogues.
fn differences(one: &Catalogue, other: &Catalogue) -> Vec<Feature> {
    let list = |catalogue, feature| {
        let all = descriptors(catalogue);
        all.filter(move |known: &&Arc<Descriptor>| known.feature == feature)
    };
    let is_same =
        |(one, other): (&Arc<Descriptor>, &Arc<Descriptor>)| Arc::ptr_eq(one, other) || one == other;
    let mut features = Feature::ALL.to_vec();
    features.retain(|&feature| {
        let (own, shared) = (list(one, feature), list(other, feature));
        own.clone().count() != shared.clone().count() || !own.zip(shared).all(is_same)
    });
    features
}
