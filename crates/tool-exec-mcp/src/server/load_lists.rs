use std::{
    collections::HashMap,
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use mcp_client::{ChangeCounts, Connection, ListResult};
use parking_lot::MutexGuard;
use raw_json::RawJson;
use tokio::time::Instant;
use tool_core::{Feature, Refresh};

use super::{McpServer, mcp_server::LoadAttempts};
use crate::{
    connection::{ConnectError, InternalUse},
    listing::{
        Freshness, RefreshSchedule, changed_lists, cut_warning, describe, hide_secrets, read_lists,
        replace_lists,
    },
    timer::sleep_until_some,
};

/// Maximum time that the first list of tools waits for the other lists, which are retried in the background.
const MAX_WAIT_FOR_OTHER_LISTS: Duration = Duration::from_secs(3);

impl McpServer {
    /// Reads the lists for a caller that waits for them.
    pub(super) async fn load_now(self: &Arc<Self>) {
        let _waiting = LoadWaiter::new(self);
        if let Some(upstream) = self.connections.shared_upstream() {
            upstream.prioritize_start();
        }
        self.load().await;
    }

    /// Reads the lists unless they were read before. Concurrent callers share one attempt, and callers during the
    /// backoff share its failure.
    pub(crate) async fn load(self: &Arc<Self>) {
        let attempts = self.attempts.borrow().n;
        let mut load = self.load_state.lock().await;
        if load.is_listed || self.attempts.borrow().n != attempts || self.lifecycle.retry_in().is_some() {
            return;
        }
        self.watch_idle();
        let start = Instant::now();
        let begun = self.lifecycle.begin_listing();
        let read = match self.list(Feature::ALL, MAX_WAIT_FOR_OTHER_LISTS).await {
            Ok(unread) => {
                load.is_listed = true;
                // After the first success, changes of the lists are followed.
                tokio::spawn(follow_changes(Arc::downgrade(self), unread));
                Ok(())
            }
            Err(reason) => Err(reason),
        };
        self.lifecycle.finish_listing(read);
        drop(begun);
        self.attempts.send_modify(|attempts| {
            *attempts = LoadAttempts {
                n: attempts.n + 1,
                took: Some(start.elapsed()),
            };
        });
    }

    /// Reads these lists and replaces the previous ones. Returns the features whose lists could not be read and stay as
    /// they were. Failures of the other lists do not fail the list of tools, which waits for them for
    /// `other_lists_wait` at most.
    ///
    /// # Errors
    /// When the server cannot be reached, or its list of tools cannot be read.
    async fn list(&self, features: &[Feature], other_lists_wait: Duration) -> Result<Vec<Feature>, String> {
        let generation = self.connections.credential_generation();
        let connection = match self.connection().await {
            Err(error) if error.is_unauthorized() => {
                self.connections.report_refused_credentials(generation);
                match self.connections.refresh_credentials(Refresh::Force).await {
                    true => self.connection().await,
                    false => Err(error),
                }
            }
            connection => connection,
        };
        let (connection, _working) = connection.map_err(|error| error.to_string())?;
        let (mut lists, mut raw, mut unread) = (HashMap::new(), HashMap::new(), Vec::new());
        self.warnings.scan_server_info(connection.server());
        let limit = |feature| match feature {
            Feature::Tool => self.settings.start_timeout,
            _ => self.settings.start_timeout.min(other_lists_wait),
        };
        let limits = &self.settings.list_limits;
        for (feature, list) in read_lists(&connection, features, limits, limit).await {
            match list {
                Ok(ListResult {
                    entries,
                    ttl,
                    truncation: cut,
                    ..
                }) => {
                    let server = connection.server();
                    self.freshness()
                        .record_read(server, feature, ttl, self.settings.refresh_interval);
                    let entries = hide_secrets(entries, &*self.secrets);
                    self.record_names(feature, &entries);
                    let mut described = describe(&self.settings, server, feature, &entries);
                    described
                        .warnings
                        .extend(cut.map(|cut| cut_warning(feature, cut, limits)));
                    lists.insert(feature, described);
                    raw.insert(feature, entries);
                }
                Err(reason) if feature == Feature::Tool => {
                    return Err(format!("it did not list its tools: {reason}"));
                }
                Err(reason) => {
                    let (server, what) = (&self.settings.name, feature.as_str());
                    let reason = self.secrets.hide_in_text(&reason);
                    tracing::warn!(server, "the list of {what}s cannot be read: {reason}");
                    unread.push(feature);
                }
            }
        }
        self.catalogue.send_if_modified(|catalogue| {
            let now = replace_lists(catalogue, lists);
            let same = (&now.tools, &now.others, &now.rejected)
                == (&catalogue.tools, &catalogue.others, &catalogue.rejected)
                && now.warnings == catalogue.warnings;
            let changed = !same || catalogue.revision == 0 || catalogue.is_kept;
            if changed {
                *catalogue = Arc::new(now);
            }
            changed
        });
        self.cache_read_lists(connection.server(), raw);
        self.scan();
        Ok(unread)
    }

    /// Scans the lists on a thread for blocking work, and logs suspicious text.
    fn scan(&self) {
        let (warnings, name) = (Arc::clone(&self.warnings), self.settings.name.clone());
        let catalogue = self.catalogue.borrow().clone();
        tokio::task::spawn_blocking(move || warnings.warnings_for(&name, &catalogue));
    }

    /// Reads the lists that are due. A server that does not run is not started to retry a list: it announces changes
    /// when it runs again.
    async fn read_due(&self, schedule: &mut RefreshSchedule) {
        if !self.is_ready() {
            schedule.drop_retries();
        }
        let mut due = schedule.take_due(Instant::now());
        for feature in self.stale() {
            if !due.contains(&feature) {
                due.push(feature);
            }
        }
        if due.is_empty() {
            return;
        }
        let unread = self.list(&due, Duration::MAX).await.unwrap_or_else(|reason| {
            let reason = self.secrets.hide_in_text(&reason);
            tracing::warn!(
                server = self.settings.name,
                "the list of tools may have changed and cannot be read: {reason}"
            );
            due.clone()
        });
        schedule.record_attempt(&due, &unread, Instant::now());
    }

    fn freshness(&self) -> MutexGuard<'_, Freshness> {
        self.freshness.lock()
    }

    /// Takes the lists whose time to live is over. A server that does not run is not started for them: it announces
    /// changes when it runs again.
    fn stale(&self) -> Vec<Feature> {
        let mut freshness = self.freshness();
        if !self.is_ready() {
            freshness.clear();
        }
        freshness.take_due(Instant::now())
    }

    /// Returns the connection that lists come from, with a guard that keeps it from idling.
    pub(super) async fn connection(&self) -> Result<(Connection, InternalUse), ConnectError> {
        let shared = self.connections.shared().await?;
        let working = shared.slots.begin_internal_use();
        if self.n_waiting.load(Ordering::SeqCst) == 0 {
            shared.upstream.start_in_background();
        }
        // A waiter that comes later hurries the start itself.
        let connection = match self.n_waiting.load(Ordering::SeqCst) {
            0 => shared.upstream.connection_in_background().await,
            _ => shared.upstream.connection().await,
        };
        Ok((connection.map_err(ConnectError::Client)?, working))
    }

    /// Records the names on a list.
    pub(crate) fn record_names(&self, feature: Feature, entries: &[RawJson]) {
        let key = match feature {
            Feature::Tool | Feature::Prompt => "name",
            Feature::Resource => "uri",
            _ => "uriTemplate",
        };
        let names = entries.iter().filter_map(|entry| {
            let name = entry.as_part().get(key)?.text()?;
            Some(name.into_owned())
        });
        let mut names_by_feature = self.upstream_names.lock();
        names_by_feature.insert(feature, names.collect());
    }
}

/// Counts a caller that waits for the lists.
struct LoadWaiter<'a>(&'a McpServer);

impl<'a> LoadWaiter<'a> {
    fn new(server: &'a McpServer) -> Self {
        server.n_waiting.fetch_add(1, Ordering::SeqCst);
        Self(server)
    }
}

impl Drop for LoadWaiter<'_> {
    fn drop(&mut self) {
        self.0.n_waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Reads lists again when the server announces changes, by the [`RefreshSchedule`], and when their time to live is
/// over. Ends when the server is dropped. `unread` are the lists that could not be read at first.
async fn follow_changes(server: Weak<McpServer>, unread: Vec<Feature>) {
    let Some(mut changes) = server
        .upgrade()
        .and_then(|server| Some(server.connections.shared_upstream()?.changes()))
    else {
        return;
    };
    // Counted from the start of the server, so that changes during the first reading count as well.
    let mut seen = ChangeCounts::default();
    let mut schedule = RefreshSchedule::new(Instant::now());
    for feature in unread {
        schedule.mark_failed(feature, Instant::now());
    }
    loop {
        let now = *changes.borrow_and_update();
        for feature in changed_lists(seen, now) {
            schedule.mark_changed(feature, Instant::now());
        }
        seen = now;
        let Some(stale) = server.upgrade().map(|server| server.freshness().next()) else {
            return;
        };
        tokio::select! {
            changed = changes.changed() => if changed.is_err() {
                return;
            },
            () = sleep_until_some([schedule.next(), stale].into_iter().flatten().min()) => {
                let Some(server) = server.upgrade() else { return };
                server.read_due(&mut schedule).await;
            }
        }
    }
}
