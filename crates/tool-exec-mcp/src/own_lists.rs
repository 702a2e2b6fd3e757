use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tool_core::{Catalogue, Descriptor, Feature, Update};

use crate::{
    describe::{Described, replaced},
    pool::Client,
    updates::Updates,
};

/// The lists of the connections that are kept for single clients. A client sees the lists of its own connections instead
/// of the shared ones for as long as one of them is open.
///
/// A client with several connections sees the union of their lists. Of two entries with one name, that of the older
/// connection counts.
pub(crate) struct OwnLists {
    source: Arc<str>,
    shared: watch::Receiver<Arc<Catalogue>>,
    updates: Arc<Updates>,
    clients: Mutex<HashMap<Client, ClientLists>>,
}

/// The lists of one client.
#[derive(Default)]
struct ClientLists {
    /// Those of each connection, by the order in which the connections were opened.
    by_line: BTreeMap<u64, Arc<Catalogue>>,
    union: Arc<Catalogue>,
    /// The revision of the shared lists that the union was last compared with, and whether it was equal.
    compared: Option<(u64, bool)>,
}

impl OwnLists {
    pub(crate) fn new(
        source: &str,
        shared: watch::Receiver<Arc<Catalogue>>,
        updates: Arc<Updates>,
    ) -> Arc<Self> {
        Arc::new(Self {
            source: source.into(),
            shared,
            updates,
            clients: Mutex::default(),
        })
    }

    /// Returns the lists of this client, `None` where they are the shared ones.
    pub(crate) fn get(&self, client: &Client) -> Option<Arc<Catalogue>> {
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
    pub(crate) fn announce(&self, client: &Client) {
        self.tell(client, Vec::new());
    }

    /// Replaces these lists of a connection.
    pub(crate) fn publish(
        &self,
        client: &Client,
        line: u64,
        lists: HashMap<Feature, Described>,
    ) -> Arc<Catalogue> {
        let shared = self.shared.borrow().clone();
        let mut clients = self.clients();
        let own = clients.entry(client.clone()).or_default();
        let before = own.effective(&shared);
        // Descriptors that are on the shared lists as well are shared, and their tools are not resolved again.
        let of_line = own.by_line.get(&line).unwrap_or(&shared);
        let of_line = Arc::new(replaced(of_line, lists));
        own.by_line.insert(line, of_line.clone());
        own.unite(before.revision + 1);
        let changed = differences(&before, &own.union);
        drop(clients);
        self.tell(client, changed);
        of_line
    }

    /// Forgets the lists of a connection that has ended.
    pub(crate) fn end(&self, client: &Client, line: u64) {
        let shared = self.shared.borrow().clone();
        let mut clients = self.clients();
        let Some(own) = clients.get_mut(client) else {
            return;
        };
        let before = own.effective(&shared);
        if own.by_line.remove(&line).is_none() {
            return;
        }
        own.unite(before.revision + 1);
        let changed = differences(&before, &own.effective(&shared));
        if own.by_line.is_empty() {
            clients.remove(client);
        }
        drop(clients);
        self.tell(client, changed);
    }

    /// Returns `true` if the client has this entry on a list of its own connections and not on the shared ones.
    pub(crate) fn has_alone(&self, client: &Client, entry: &Entry) -> bool {
        let has = |catalogue: &Catalogue| descriptors(catalogue).any(|known| Entry::of(known) == *entry);
        let own = self.clients().get(client).map(|own| own.union.clone());
        own.is_some_and(|own| has(&own)) && !has(&self.shared.borrow())
    }

    fn tell(&self, client: &Client, changed: Vec<Feature>) {
        self.updates.tell(&Update::ClientLists {
            source: self.source.clone(),
            clients: client.group(),
            changed,
        });
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<Client, ClientLists>> {
        self.clients.lock()
    }
}

impl ClientLists {
    /// What the client sees.
    fn effective(&self, shared: &Arc<Catalogue>) -> Arc<Catalogue> {
        let lists = if self.by_line.is_empty() {
            shared
        } else {
            &self.union
        };
        lists.clone()
    }

    fn unite(&mut self, revision: u64) {
        self.compared = None;
        let mut lines = self.by_line.values();
        let Some(first) = lines.next() else { return };
        let mut union = Catalogue {
            is_kept: false,
            revision,
            tools: first.tools.clone(),
            others: first.others.clone(),
            rejected: first.rejected.clone(),
            warnings: first.warnings.clone(),
        };
        let mut known: HashSet<_> = descriptors(first).map(|known| key(known)).collect();
        for line in lines {
            for entry in descriptors(line) {
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

/// An entry of a server's list, by the server's own name for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    feature: Feature,
    own: String,
}

impl Entry {
    /// The entry that a descriptor stands for.
    pub(crate) fn of(descriptor: &Descriptor) -> Self {
        let config = &descriptor.executor.config;
        let own = ["tool", "prompt", "uri"]
            .iter()
            .find_map(|key| config.get(key)?.as_str());
        Self {
            feature: descriptor.feature,
            own: own.unwrap_or_default().to_owned(),
        }
    }
}

/// The entries of a catalogue.
pub(crate) fn entries(catalogue: &Catalogue) -> HashSet<Entry> {
    descriptors(catalogue).map(|known| Entry::of(known)).collect()
}

fn descriptors(catalogue: &Catalogue) -> impl Iterator<Item = &Arc<Descriptor>> + Clone {
    catalogue.tools.iter().chain(&catalogue.others)
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
