use std::{
    hash::{BuildHasher, Hash, Hasher, RandomState},
    sync::{Arc, OnceLock},
};

use tool_core::{Caller, Feature, Tool};
use tool_policy::Rules;
use tool_registry::Snapshot;

/// View of a caller: everything that it may see at one point in time. Clones share it.
#[derive(Debug, Clone)]
pub struct View(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    revision: u64,
    scope: u64,
    hash_of_tools: OnceLock<u64>,
    lists: [List; Feature::ALL.len()],
}

#[derive(Debug)]
struct List {
    revision: u64,
    items: Vec<Arc<Tool>>,
}

impl View {
    pub(crate) fn new(snapshot: &Snapshot, rules: &Rules, caller: &Caller) -> Self {
        let lists = std::array::from_fn(|index| {
            let feature = Feature::ALL[index];
            let items = snapshot.list(feature).iter();
            List {
                revision: snapshot.revision_of(feature),
                items: items
                    .filter(|tool| rules.admit(tool, caller).is_ok())
                    .cloned()
                    .collect(),
            }
        });
        Self(Arc::new(Inner {
            revision: snapshot.revision(),
            scope: snapshot.scope(),
            hash_of_tools: OnceLock::new(),
            lists,
        }))
    }

    /// Returns the revision, which grows with every change: two views of one caller with equal revisions are equal.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.0.revision
    }

    /// Returns the scope: 0 for a view of shared lists; a unique number for the view of a client with lists of its
    /// own.
    #[must_use]
    pub fn scope(&self) -> u64 {
        self.0.scope
    }

    /// Returns the tools, ordered by name.
    #[must_use]
    pub fn tools(&self) -> &[Arc<Tool>] {
        self.list(Feature::Tool)
    }

    /// Returns the items of one kind, ordered by name.
    #[must_use]
    pub fn list(&self, feature: Feature) -> &[Arc<Tool>] {
        &self.list_of(feature).items
    }

    /// Returns the revision in which the list of this kind last changed.
    #[must_use]
    pub fn revision_of(&self, feature: Feature) -> u64 {
        self.list_of(feature).revision
    }

    /// Returns a hash of the names of the tools, computed once: the hasher must always be the same.
    pub(crate) fn hash_of_tools(&self, hasher: &RandomState) -> u64 {
        *self.0.hash_of_tools.get_or_init(|| {
            let mut state = hasher.build_hasher();
            self.tools().iter().for_each(|tool| tool.name().hash(&mut state));
            state.finish()
        })
    }

    fn list_of(&self, feature: Feature) -> &List {
        let index = Feature::ALL.iter().position(|known| *known == feature);
        &self.0.lists[index.expect("every kind is among all kinds")]
    }
}
