use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};
use tool_core::Source;

use crate::{Registry, Snapshot, registry::Shared};

/// The loads of sources of which no list is known yet, by the source's name.
#[derive(Default)]
pub(crate) struct FirstLoads(Mutex<HashMap<String, FirstLoad>>);

struct FirstLoad {
    source: Weak<dyn Source>,
    /// When the source was first loaded.
    begun: Instant,
    /// Whether the latest load is over.
    is_over: watch::Receiver<bool>,
}

impl FirstLoads {
    /// Begins to load a source unless it is being loaded. A load goes on when nobody waits for it. Returns when the source
    /// was first loaded, and what tells that the load is over.
    fn begin(&self, source: &Arc<dyn Source>, registry: &Arc<Shared>) -> (Instant, watch::Receiver<bool>) {
        let mut loads = self.0.lock();
        let known = loads.get(source.name());
        let known = known.filter(|known| Weak::ptr_eq(&known.source, &Arc::downgrade(source)));
        let begun = known.map_or_else(Instant::now, |known| known.begun);
        if let Some(running) = known.filter(|known| !*known.is_over.borrow()) {
            return (begun, running.is_over.clone());
        }
        let (over, is_over) = watch::channel(false);
        let (loaded, registry) = (Arc::clone(source), Arc::downgrade(registry));
        tokio::spawn(async move {
            loaded.load_in_background().await;
            if let Some(shared) = registry.upgrade() {
                Registry(shared).refresh();
            }
            over.send_replace(true);
        });
        let load = FirstLoad {
            source: Arc::downgrade(source),
            begun,
            is_over: is_over.clone(),
        };
        loads.insert(source.name().to_owned(), load);
        (begun, is_over)
    }
}

impl Registry {
    /// Loads every source of which no list is known, all at once, and returns what is known when all are loaded or have
    /// been for `wait`. Each source is waited for until that time has passed since it was first loaded, so that one that
    /// hangs holds up one list and not each. Loads go on in the background: see [`Registry::changes`] and
    /// [`Registry::unlisted_sources`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn load_within(&self, wait: Duration) -> Arc<Snapshot> {
        self.recall().await;
        let loads = self.unlisted_sources().into_iter().map(|source| {
            let (begun, mut is_over) = self.0.first_loads.begin(&source, &self.0);
            async move {
                let over = is_over.wait_for(|is_over| *is_over);
                // Whoever is late is in the next list.
                match begun.checked_add(wait) {
                    Some(until) => drop(timeout_at(until, over).await),
                    None => drop(over.await),
                }
            }
        });
        let loads: Vec<_> = loads.collect();
        if !loads.is_empty() {
            join_all(loads).await;
            self.refresh();
        }
        self.snapshot()
    }

    /// The sources of which no list is known, neither of this run nor of an earlier one.
    #[must_use]
    pub fn unlisted_sources(&self) -> Vec<Arc<dyn Source>> {
        let mut sources = self.sources();
        sources.retain(|source| source.snapshot().revision == 0);
        sources
    }
}
