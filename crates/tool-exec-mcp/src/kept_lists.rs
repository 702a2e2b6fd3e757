//! The lists of servers between runs: loaded before a server runs, and stored whenever it gave others.

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
    sync::{OnceCell, watch},
    task::{JoinHandle, spawn_blocking},
    time::{sleep, timeout},
};
use tool_core::{Catalogue, Feature};

use crate::{
    CachedLists, ListCacheKey, ListCache, McpServer,
    describe::{describe, replaced},
};

/// Keeps the lists of one server in a store.
pub(crate) struct ListKeeper {
    store: Arc<dyn ListCache>,
    key: ListCacheKey,
    recall: Arc<Recall>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The lists that the server gave last, in this run or an earlier one.
    latest: Option<CachedLists>,
    /// Whether they were stored in this run.
    is_stored: bool,
    /// The last task that stores lists.
    storing: Option<JoinHandle<()>>,
}

/// Loads the lists of many servers at once, once.
struct Recall {
    store: Arc<dyn ListCache>,
    servers: Vec<Weak<McpServer>>,
    done: OnceCell<()>,
}

/// How long the end of a server waits until its lists are stored.
const LAST_SAVE: Duration = Duration::from_secs(5);
/// How long a server is left alone that runs and whose lists could not be read.
const AGAIN: Duration = Duration::from_secs(1);

impl McpServer {
    /// Has these servers keep their lists in a store. [`Source::recall`](tool_core::Source::recall) of any of them loads
    /// those of all, so give those that belong together at once, before they are used. A server that keeps its lists
    /// already stays as it is.
    pub fn cache_lists(servers: &[Arc<Self>], store: &Arc<dyn ListCache>) {
        let recall = Arc::new(Recall {
            store: Arc::clone(store),
            servers: servers.iter().map(Arc::downgrade).collect(),
            done: OnceCell::new(),
        });
        for server in servers {
            server.keeper.get_or_init(|| ListKeeper {
                store: Arc::clone(store),
                key: ListCacheKey::with_target(server.settings(), &server.target_digest()),
                recall: Arc::clone(&recall),
                state: Mutex::default(),
            });
        }
    }

    /// Takes the lists of an earlier run for the present ones, unless those were read already.
    pub(crate) async fn recall(&self) {
        if let Some(keeper) = self.keeper.get() {
            keeper.recall.run().await;
        }
    }

    /// Stores lists that were just read, with those that were not read as they were before.
    pub(crate) fn keep(&self, server: &ServerInfo, read: HashMap<Feature, Vec<RawJson>>) {
        let Some(keeper) = self.keeper.get() else { return };
        let mut state = keeper.state();
        let before = state.latest.as_ref();
        let mut lists = before.map(|before| before.lists.clone()).unwrap_or_default();
        lists.extend(read);
        let now = CachedLists::new(server.clone(), lists);
        if state.is_stored && before == Some(&now) {
            return;
        }
        state.latest = Some(now.clone());
        state.is_stored = true;
        let (store, key, before) = (keeper.store.clone(), keeper.key.clone(), state.storing.take());
        state.storing = Some(tokio::spawn(async move {
            // In their order: the last one counts.
            if let Some(before) = before {
                let _ = before.await;
            }
            store.save(key, now).await;
        }));
    }

    /// Waits until the lists are stored that were read last.
    pub(crate) async fn finish_keeping(&self) {
        let storing = self.keeper.get().and_then(|keeper| keeper.state().storing.take());
        if let Some(storing) = storing {
            let _ = timeout(LAST_SAVE, storing).await;
        }
    }

    /// The instructions that the server gave when its lists were read last, in this run or an earlier one.
    pub(crate) fn kept_instructions(&self) -> Option<RawJson> {
        let state = self.keeper.get()?.state();
        state.latest.as_ref()?.server.instructions.clone()
    }

    /// The key of the server's lists in the store. Returns `None` if they are not kept.
    fn list_key(&self) -> Option<ListCacheKey> {
        self.keeper.get().map(|keeper| keeper.key.clone())
    }

    fn described(&self, kept: &CachedLists) -> Catalogue {
        let lists = kept.lists.iter().map(|(feature, entries)| {
            self.note_names(*feature, entries);
            let described = describe(self.settings(), &kept.server, *feature, entries);
            (*feature, described)
        });
        Catalogue {
            is_kept: true,
            ..replaced(&Catalogue::default(), lists.collect())
        }
    }

    fn adopt(self: &Arc<Self>, kept: CachedLists, described: Catalogue) {
        let Some(keeper) = self.keeper.get() else { return };
        let mut state = keeper.state();
        let is_first = self.catalogue.send_if_modified(|catalogue| {
            let is_first = catalogue.revision == 0;
            if is_first {
                *catalogue = Arc::new(described);
            }
            is_first
        });
        if is_first {
            state.latest = Some(kept);
            tokio::spawn(confirm_when_started(Arc::downgrade(self), self.life.is_running()));
        }
    }
}

impl Recall {
    async fn run(&self) {
        let recall = || async {
            let servers = self.servers.iter().filter_map(Weak::upgrade);
            let (servers, keys): (Vec<_>, Vec<_>) = servers
                .filter_map(|server| server.list_key().map(|key| (server, key)))
                .unzip();
            let kept = self.store.load(&keys).await;
            let mut found: Vec<_> = servers
                .into_iter()
                .zip(kept)
                .filter_map(|(server, kept)| Some((server, kept?)))
                .collect();
            // Describing looks through the schemas of many tools, so it runs on all cores.
            let n_threads = available_parallelism().map_or(1, usize::from);
            let n_servers = found.len().div_ceil(n_threads).max(1);
            let mut tasks = Vec::new();
            while !found.is_empty() {
                let part = found.split_off(found.len().saturating_sub(n_servers));
                tasks.push(spawn_blocking(|| {
                    let described = part.into_iter().map(|(server, kept)| {
                        let described = server.described(&kept);
                        (server, kept, described)
                    });
                    described.collect::<Vec<_>>()
                }));
            }
            for task in tasks {
                for (server, kept, described) in task.await.unwrap_or_default() {
                    server.adopt(kept, described);
                }
            }
        };
        self.done.get_or_init(recall).await;
    }
}

impl ListKeeper {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Reads the lists of a server that runs, whatever it was started for, until those of an earlier run are confirmed.
async fn confirm_when_started(server: Weak<McpServer>, mut is_running: watch::Receiver<bool>) {
    // The sender goes with the server.
    while is_running.wait_for(|is_running| *is_running).await.is_ok() {
        let Some(server) = server.upgrade() else { return };
        server.load().await;
        if !server.catalogue.borrow().is_kept {
            return;
        }
        let pause = server.life.rest().unwrap_or(AGAIN);
        drop(server);
        sleep(pause).await;
    }
}
