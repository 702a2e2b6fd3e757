use std::{collections::BTreeMap, sync::Arc};

use parking_lot::RwLock;

/// Maximum number of names with an entry of their own.
const MAX_NAMES: usize = 1000;
/// Name of the entry that all further names share.
const OTHER: &str = "other";

/// Map from names to metrics, with a maximum number of entries.
pub(super) struct BoundedMap<T>(RwLock<BTreeMap<Arc<str>, Arc<T>>>);

impl<T> Default for BoundedMap<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<T: Default> BoundedMap<T> {
    /// Calls `act` with the entry of a name, which is created if needed.
    pub(super) fn with(&self, name: &str, act: impl FnOnce(&T)) {
        if let Some(known) = self.0.read().get(name) {
            return act(known);
        }
        let mut all = self.0.write();
        let name = if all.len() < MAX_NAMES || all.contains_key(name) {
            name
        } else {
            OTHER
        };
        act(all.entry(name.into()).or_default());
    }

    /// Returns all entries, sorted by name.
    pub(super) fn all(&self) -> Vec<(Arc<str>, Arc<T>)> {
        let all = self.0.read();
        all.iter()
            .map(|(name, one)| (name.clone(), one.clone()))
            .collect()
    }
}
