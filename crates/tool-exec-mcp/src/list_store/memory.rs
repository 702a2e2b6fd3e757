use std::{collections::HashMap, future::ready, io};

use parking_lot::{Mutex, MutexGuard};
use tool_core::BoxFuture;

use super::{CachedLists, ListCacheKey, ListCache};

/// A [`ListCache`] in memory: for tests, and for programs that build one toolplane after another.
#[derive(Debug, Default)]
pub struct MemoryListCache(Mutex<HashMap<ListCacheKey, CachedLists>>);

impl MemoryListCache {
    fn entries(&self) -> MutexGuard<'_, HashMap<ListCacheKey, CachedLists>> {
        self.0.lock()
    }
}

impl ListCache for MemoryListCache {
    fn load<'a>(&'a self, keys: &'a [ListCacheKey]) -> BoxFuture<'a, Vec<Option<CachedLists>>> {
        let entries = self.entries();
        let found = keys.iter().map(|key| entries.get(key).cloned()).collect();
        Box::pin(ready(found))
    }

    fn save(&self, key: ListCacheKey, lists: CachedLists) -> BoxFuture<'_, ()> {
        self.entries().insert(key, lists);
        Box::pin(ready(()))
    }

    fn forget<'a>(&'a self, server: Option<&'a str>) -> BoxFuture<'a, io::Result<usize>> {
        let mut entries = self.entries();
        let before = entries.len();
        entries.retain(|key, _| server.is_some_and(|server| key.server != server));
        Box::pin(ready(Ok(before - entries.len())))
    }
}
