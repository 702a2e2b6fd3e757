//! Loads of sources, and the recall of lists that were kept from an earlier run.

use std::{
    collections::HashMap,
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};
use tool_core::Source;

use super::{Registry, Shared};
use crate::Snapshot;

/// Loads of sources whose lists are unknown, by the source's name.
#[derive(Default)]
pub(crate) struct InitialLoads(Mutex<HashMap<String, InitialLoad>>);

struct InitialLoad {
    source: Weak<dyn Source>,
    /// Time at which the source was first loaded.
    begun: Instant,
    /// `true` once the latest load has ended.
    is_over: watch::Receiver<bool>,
}

impl InitialLoads {
    /// Starts to load a source unless it is being loaded already. A load continues if nobody waits for it. Returns the time at
    /// which the source was first loaded, and a receiver that yields `true` once the load has ended.
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
                // Whoever waits makes a snapshot of all loads that have ended.
                match shared.source_changes.receiver_count() {
                    0 => Registry(shared).refresh(),
                    _ => shared.report_change(&loaded),
                }
            }
            over.send_replace(true);
        });
        let load = InitialLoad {
            source: Arc::downgrade(source),
            begun,
            is_over: is_over.clone(),
        };
        loads.insert(source.name().to_owned(), load);
        (begun, is_over)
    }
}

impl Registry {
    /// Makes every source offer the lists that were kept from an earlier run, unless it has read its lists in this run. Starts
    /// no server.
    ///
    /// # Cancellation
    /// If the future is dropped, the lists that were offered until then are in the snapshot, and the next call recalls the rest.
    pub async fn recall(&self) {
        loop {
            let parts = self.0.parts.load_full();
            let done = parts.generation + 1;
            if *self.0.recalled.borrow() == done {
                return;
            }
            // A snapshot of kept lists needs the pins, and may not block a thread that runs tasks.
            parts.pins.store().ready().await;
            // The guard makes one snapshot of all sources, not one for each.
            let guard = RecallGuard::begin(self);
            join_all(parts.sources.iter().map(|source| source.recall())).await;
            drop(guard);
            self.0.recalled.send_replace(done);
        }
    }

    /// Returns `true` once every source has offered the lists that were kept from an earlier run: see [`Registry::recall`].
    #[must_use]
    pub fn has_recalled(&self) -> bool {
        *self.0.recalled.borrow() > 0
    }

    /// Waits until every source has offered its kept lists. Begins nothing: see [`Registry::recall`].
    ///
    /// # Cancellation
    /// Dropping the future ends the wait.
    pub async fn recalled(&self) {
        // The sender is in `self`.
        let _ = self
            .0
            .recalled
            .subscribe()
            .wait_for(|recalled| *recalled > 0)
            .await;
    }

    /// Loads the sources that match, concurrently. If the parts are replaced in the meantime, the new sources that match are
    /// loaded as well.
    pub(super) async fn load_matching(&self, matches: impl Fn(&dyn Source) -> bool) {
        loop {
            let parts = self.0.parts.load_full();
            let matching = parts.sources.iter().filter(|source| matches(&***source));
            let loads: Vec<_> = matching.map(|source| source.load()).collect();
            join_all(loads).await;
            if Arc::ptr_eq(&parts, &self.0.parts.load()) {
                break;
            }
        }
        self.refresh();
    }

    /// Loads every source that is not loaded yet, concurrently, and returns the snapshot after that. A source that fails is
    /// left out: see [`Registry::status`].
    ///
    /// # Cancellation
    /// Dropping the future stops waiting for the sources. A source that others load as well is loaded for them, and
    /// [`Registry::follow`] puts its lists into a later snapshot.
    pub async fn load(&self) -> Arc<Snapshot> {
        self.recall().await;
        self.load_matching(|_| true).await;
        self.snapshot()
    }

    /// Loads every source whose lists are unknown, concurrently. Returns the snapshot once all are loaded, or once `wait` has
    /// passed for each.
    ///
    /// The wait for a source counts from its first load, so that a source that hangs delays only the first list. Loads
    /// continue in the background: see [`Registry::changes`] and [`Registry::unlisted_sources`].
    ///
    /// # Cancellation
    /// Dropping the future stops waiting. The loads continue.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn load_within(&self, wait: Duration) -> Arc<Snapshot> {
        self.recall().await;
        let loads = self.unlisted_sources().into_iter().map(|source| {
            let (begun, mut is_over) = self.0.initial_loads.begin(&source, &self.0);
            async move {
                let over = is_over.wait_for(|is_over| *is_over);
                // A source that is late is in a later snapshot.
                match begun.checked_add(wait) {
                    Some(until) => drop(timeout_at(until, over).await),
                    None => drop(over.await),
                }
            }
        });
        join_all(loads.collect::<Vec<_>>()).await;
        // Also lists that a source got before this call, of which the task that follows it does not know yet.
        self.refresh();
        self.snapshot()
    }

    /// Returns the sources whose lists are unknown, both from this run and from an earlier one.
    #[must_use]
    pub fn unlisted_sources(&self) -> Vec<Arc<dyn Source>> {
        let mut sources = self.sources();
        sources.retain(|source| source.snapshot().revision == 0);
        sources
    }
}

/// Guard of a recall in progress. When dropped, also by cancellation, it makes a snapshot of all lists.
struct RecallGuard<'a>(&'a Registry);

impl<'a> RecallGuard<'a> {
    fn begin(registry: &'a Registry) -> Self {
        registry.0.n_recalling.fetch_add(1, Ordering::SeqCst);
        Self(registry)
    }
}

impl Drop for RecallGuard<'_> {
    fn drop(&mut self) {
        // Decremented first: lists that were skipped until then are in the snapshot that is made now.
        self.0.0.n_recalling.fetch_sub(1, Ordering::SeqCst);
        self.0.refresh();
    }
}
