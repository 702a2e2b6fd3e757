use std::sync::Arc;

use tool_core::{Caller, Feature, Tool};
use tool_policy::Rules;
use tool_registry::Snapshot;

/// What a caller may see, at one time. Cloning shares it.
#[derive(Debug, Clone)]
pub struct View(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    revision: u64,
    scope: u64,
    lists: [List; Feature::ALL.len()],
}

#[derive(Debug)]
struct List {
    revision: u64,
    items: Vec<Arc<Tool>>,
}

impl View {
    pub(crate) fn new(snapshot: &Snapshot, rules: &Rules, caller: &Caller) -> Self {
        let lists = Feature::ALL.map(|feature| {
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
            lists,
        }))
    }

    /// Grows with every change: two views of one caller with the same revision are the same.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.0.revision
    }

    /// 0 for a view of what everyone shares; of a client that sees other lists than its caller's other clients, a number
    /// that no other view has.
    #[must_use]
    pub fn scope(&self) -> u64 {
        self.0.scope
    }

    /// The tools in the order of their names.
    #[must_use]
    pub fn tools(&self) -> &[Arc<Tool>] {
        self.list(Feature::Tool)
    }

    /// All of a kind in the order of their names.
    #[must_use]
    pub fn list(&self, feature: Feature) -> &[Arc<Tool>] {
        &self.list_of(feature).items
    }

    /// The revision in which the list of this kind last changed.
    #[must_use]
    pub fn revision_of(&self, feature: Feature) -> u64 {
        self.list_of(feature).revision
    }

    fn list_of(&self, feature: Feature) -> &List {
        let index = Feature::ALL.iter().position(|known| *known == feature);
        &self.0.lists[index.expect("every kind is among all kinds")]
    }
}
