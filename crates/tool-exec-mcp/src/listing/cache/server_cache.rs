//! Lists of servers between runs: loaded before a server runs, and stored whenever they have changed.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    thread::available_parallelism,
    time::Duration,
};

use mcp_client::ServerInfo;
use parking_lot::{Mutex, MutexGuard};
use raw_json::RawJson;
use tokio::{
    runtime::Handle,
    sync::{OnceCell, watch},
    task::{JoinHandle, spawn_blocking},
    time::{sleep, timeout},
};
use tool_core::{Catalogue, Feature};

use super::{CachedLists, ListCache, ListCacheKey};
use crate::{
    McpServer,
    listing::{describe, replace_lists},
};

/// Cache entry of one server.
pub(crate) struct ServerListCache {
    store: Arc<dyn ListCache>,
    key: ListCacheKey,
    recall: Arc<CacheLoad>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Lists that the server gave last, in this run or an earlier one.
    latest: Option<CachedLists>,
    /// `true` if they were stored in this run.
    is_stored: bool,
    /// The last task that stores lists.
    storing: Option<JoinHandle<()>>,
}

/// Loads the lists of many servers at once, and only once.
struct CacheLoad {
    store: Arc<dyn ListCache>,
    servers: Vec<Weak<McpServer>>,
    done: OnceCell<()>,
}

/// Number of servers from which on their lists are loaded in several parts.
const MIN_PART: usize = 64;
/// Maximum time that the shutdown of a server waits for its lists to be stored.
const MAX_FINAL_SAVE: Duration = Duration::from_secs(5);
/// Pause before a running server is asked again whose lists could not be read.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

impl McpServer {
    /// Makes these servers store their lists in a cache. [`Source::recall`](tool_core::Source::recall) of any of them
    /// loads the lists of all, so pass servers that belong together at once, before they are used. A server that has a
    /// cache keeps it.
    pub fn cache_lists(servers: &[Arc<Self>], store: &Arc<dyn ListCache>) {
        let recall = Arc::new(CacheLoad {
            store: Arc::clone(store),
            servers: servers.iter().map(Arc::downgrade).collect(),
            done: OnceCell::new(),
        });
        for server in servers {
            server.list_cache.get_or_init(|| ServerListCache {
                store: Arc::clone(store),
                key: ListCacheKey::with_target(server.settings(), &server.target_digest()),
                recall: Arc::clone(&recall),
                state: Mutex::default(),
            });
        }
    }

    /// Begins to load the lists of these servers from their cache, in the background. Outside of a runtime, they are loaded when
    /// they are recalled.
    pub fn begin_recall(servers: &[Arc<Self>]) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let mut begun: Vec<Arc<CacheLoad>> = Vec::new();
        for list_cache in servers.iter().filter_map(|server| server.list_cache.get()) {
            if begun.iter().any(|load| Arc::ptr_eq(load, &list_cache.recall)) {
                continue;
            }
            let load = Arc::clone(&list_cache.recall);
            begun.push(Arc::clone(&load));
            runtime.spawn(async move { load.run().await });
        }
    }

    /// Offers the lists of an earlier run, unless the server's lists were read already.
    pub(crate) async fn recall(&self) {
        if let Some(list_cache) = self.list_cache.get() {
            list_cache.recall.run().await;
        }
    }

    /// Stores lists that were just read, together with the previous state of those that were not.
    pub(crate) fn cache_read_lists(&self, server: &ServerInfo, read: HashMap<Feature, Vec<RawJson>>) {
        let Some(list_cache) = self.list_cache.get() else {
            return;
        };
        let mut state = list_cache.state();
        let before = state.latest.as_ref();
        let mut lists = before.map(|before| before.lists.clone()).unwrap_or_default();
        lists.extend(read);
        let now = CachedLists::new(server.clone(), lists);
        if state.is_stored && before == Some(&now) {
            return;
        }
        state.latest = Some(now.clone());
        state.is_stored = true;
        let (store, key, before) = (
            list_cache.store.clone(),
            list_cache.key.clone(),
            state.storing.take(),
        );
        state.storing = Some(tokio::spawn(async move {
            // In order: the last one counts.
            if let Some(before) = before {
                let _ = before.await;
            }
            store.save(key, now).await;
        }));
    }

    /// Waits until the lists that were read last are stored.
    pub(crate) async fn finish_caching(&self) {
        let storing = self
            .list_cache
            .get()
            .and_then(|list_cache| list_cache.state().storing.take());
        if let Some(storing) = storing {
            let _ = timeout(MAX_FINAL_SAVE, storing).await;
        }
    }

    /// Returns the instructions that came with the last lists, in this run or an earlier one.
    pub(crate) fn cached_instructions(&self) -> Option<RawJson> {
        let state = self.list_cache.get()?.state();
        state.latest.as_ref()?.server.instructions.clone()
    }

    /// Returns the key of the server's lists in the cache, or `None` if they are not cached.
    fn list_cache_key(&self) -> Option<ListCacheKey> {
        self.list_cache.get().map(|list_cache| list_cache.key.clone())
    }

    fn describe_cached(&self, cached: &CachedLists) -> Catalogue {
        let lists = cached.lists.iter().map(|(feature, entries)| {
            self.record_names(*feature, entries);
            let described = describe(self.settings(), &cached.server, *feature, entries);
            (*feature, described)
        });
        let mut catalogue = replace_lists(&Catalogue::default(), lists.collect());
        catalogue.is_kept = true;
        catalogue
    }

    fn adopt_cached(self: &Arc<Self>, cached: CachedLists, described: Catalogue) {
        let Some(list_cache) = self.list_cache.get() else {
            return;
        };
        let mut state = list_cache.state();
        let is_first = self.catalogue.send_if_modified(|catalogue| {
            let is_first = catalogue.revision == 0;
            if is_first {
                *catalogue = Arc::new(described);
            }
            is_first
        });
        if is_first {
            state.latest = Some(cached);
            tokio::spawn(confirm_when_started(
                Arc::downgrade(self),
                self.lifecycle.watch_running(),
            ));
        }
    }
}

impl CacheLoad {
    async fn run(&self) {
        let recall = || async {
            let servers = self.servers.iter().filter_map(Weak::upgrade);
            let (servers, keys): (Vec<_>, Vec<_>) = servers
                .filter_map(|server| server.list_cache_key().map(|key| (server, key)))
                .unzip();
            // In one part for each core: more of them would open more connections to a database than they save.
            let n_cores = available_parallelism().map_or(1, usize::from);
            let n_servers = keys.len().div_ceil(n_cores).max(MIN_PART);
            let mut servers = servers.into_iter();
            let tasks: Vec<_> = keys
                .chunks(n_servers)
                .map(|keys| {
                    let (store, keys) = (self.store.clone(), keys.to_vec());
                    let servers: Vec<_> = servers.by_ref().take(keys.len()).collect();
                    tokio::spawn(async move {
                        let cached = store.load(&keys).await;
                        let describe = || describe_cached(servers, cached);
                        spawn_blocking(describe).await.unwrap_or_default()
                    })
                })
                .collect();
            let mut all = Vec::new();
            for task in tasks {
                all.extend(task.await.unwrap_or_default());
            }
            // At once: whoever makes a snapshot in between would make one of a few servers.
            for (server, cached, described) in all {
                server.adopt_cached(cached, described);
            }
        };
        self.done.get_or_init(recall).await;
    }
}

/// Returns the servers that have cached lists, with these and their descriptions.
fn describe_cached(
    servers: Vec<Arc<McpServer>>,
    cached: Vec<Option<CachedLists>>,
) -> Vec<(Arc<McpServer>, CachedLists, Catalogue)> {
    let found = servers.into_iter().zip(cached);
    found
        .filter_map(|(server, cached)| {
            let cached = cached?;
            let described = server.describe_cached(&cached);
            Some((server, cached, described))
        })
        .collect()
}

impl ServerListCache {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Reads the lists of a server once it runs, whatever it was started for, until the cached lists are confirmed.
async fn confirm_when_started(server: Weak<McpServer>, mut is_running: watch::Receiver<bool>) {
    // The sender ends with the server.
    while is_running.wait_for(|is_running| *is_running).await.is_ok() {
        let Some(server) = server.upgrade() else { return };
        server.load().await;
        if !server.catalogue.borrow().is_kept {
            return;
        }
        let pause = server.lifecycle.retry_in().unwrap_or(RETRY_PAUSE);
        drop(server);
        sleep(pause).await;
    }
}
