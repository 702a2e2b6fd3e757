use std::{fmt, sync::Arc, time::Duration};

use mcp_client::{ServerState, ServerStatus};
use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::watch, time};
use tool_core::{Instant, Lifecycle, SourceState, SourceStatus, Update};

use crate::notifications::{Notifier, UpdateQueue};

/// Lifecycle of a server as a source of tools. It follows from the state of the connection and the result of reading
/// the lists.
///
/// The [`Lifecycle`] changes with each of them, before anybody sees the result. A task delivers the changes, since the
/// connection cannot wait for listeners.
pub(crate) struct ServerLifecycle {
    facts: Mutex<Facts>,
    start: time::Instant,
    changes: UpdateQueue,
    /// `true` while the shared connection is open.
    is_running: watch::Sender<bool>,
}

struct Facts {
    lifecycle: Lifecycle,
    /// Status of the shared connection. `None` before anyone has needed it.
    client: Option<ClientStatus>,
    /// `true` while the lists are being read for the first time.
    is_listing: bool,
    /// `true` once the lists were read.
    is_listed: bool,
    /// Reason for which the last reading failed.
    failure: Option<String>,
    /// Instant before which the lists are not tried again, and the number of failures in a row.
    backoff: Option<(time::Instant, u32)>,
}

struct ClientStatus {
    state: ServerState,
    reason: Option<String>,
}

/// Backoff after lists could not be read: doubled each time, up to the maximum.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);

impl ServerLifecycle {
    pub(crate) fn new(source: &str, notifier: Arc<Notifier>) -> Arc<Self> {
        Arc::new(Self {
            facts: Mutex::new(Facts {
                lifecycle: Lifecycle::new(source, Instant::default()),
                client: None,
                is_listing: false,
                is_listed: false,
                failure: None,
                backoff: None,
            }),
            start: time::Instant::now(),
            changes: UpdateQueue::new(notifier),
            is_running: watch::Sender::default(),
        })
    }

    /// Returns a receiver that holds `true` while the shared connection is open.
    pub(crate) fn watch_running(&self) -> watch::Receiver<bool> {
        self.is_running.subscribe()
    }

    /// Records the status of the connection.
    pub(crate) fn set_client_status(&self, status: &ServerStatus) {
        self.is_running.send_replace(status.state == ServerState::Ready);
        self.change(|facts| {
            facts.client = Some(ClientStatus {
                state: status.state,
                reason: status.reason.clone(),
            });
        });
    }

    /// Records that the lists are being read for the first time, until the guard is dropped.
    pub(crate) fn begin_listing(&self) -> FirstListing<'_> {
        self.change(|facts| facts.is_listing = true);
        FirstListing(self)
    }

    /// Records the result of reading the lists, with the reason for a failure.
    pub(crate) fn finish_listing(&self, result: Result<(), String>) {
        self.change(|facts| match result {
            Ok(()) => {
                facts.is_listed = true;
                (facts.failure, facts.backoff) = (None, None);
            }
            Err(reason) => {
                facts.failure = Some(reason);
                facts.backoff = facts.next_backoff();
            }
        });
    }

    /// Returns the rest of the backoff after lists could not be read.
    pub(crate) fn retry_in(&self) -> Option<Duration> {
        let (until, _) = self.facts().backoff?;
        let left = until.checked_duration_since(time::Instant::now())?;
        (!left.is_zero()).then_some(left)
    }

    /// Returns the status of the source, with the details that the client reports.
    pub(crate) fn status(&self, client: Option<&ServerStatus>) -> SourceStatus {
        let now = self.now();
        let status = self.facts().lifecycle.status(now);
        let retry_in = client.and_then(|client| client.retry_in);
        let mut status = status;
        status.retry_in = retry_in.or_else(|| self.retry_in());
        status
    }

    fn change(&self, note: impl FnOnce(&mut Facts)) {
        let mut facts = self.facts();
        note(&mut facts);
        let state = facts.state();
        let Some(change) = facts.lifecycle.enter(state, self.now()) else {
            return;
        };
        // Within the lock, so that changes are delivered in their order.
        self.changes.push(Update::State(change));
        drop(facts);
        self.changes.deliver();
    }

    fn now(&self) -> Instant {
        Instant::since_start(self.start.elapsed())
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock()
    }
}

impl Facts {
    /// Returns the end of the backoff after another failure, or `None` if the client itself backs off.
    fn next_backoff(&self) -> Option<(time::Instant, u32)> {
        let n = self.backoff.map_or(0, |(_, n)| n);
        let pause = match &self.client {
            // A reference has no value, which costs little to find out.
            None => MIN_BACKOFF,
            Some(client) if client.state == ServerState::Ready => {
                MIN_BACKOFF.saturating_mul(1 << n.min(6)).min(MAX_BACKOFF)
            }
            Some(_) => return None,
        };
        Some((time::Instant::now() + pause, n.saturating_add(1)))
    }

    fn state(&self) -> SourceState {
        let failed = |client: Option<&ClientStatus>| {
            let reason = client.and_then(|client| client.reason.clone());
            let reason = reason.or_else(|| self.failure.clone());
            SourceState::Failed(reason.unwrap_or_else(|| "it is not running".to_owned()))
        };
        let Some(client) = &self.client else {
            return match &self.failure {
                _ if self.is_listing => SourceState::Starting,
                Some(_) => failed(None),
                None => SourceState::NotStarted,
            };
        };
        match client.state {
            ServerState::NotStarted => SourceState::NotStarted,
            ServerState::Starting => SourceState::Starting,
            ServerState::Ready if self.is_listed => SourceState::Ready,
            // A source that was ready before the lists were wanted stays ready while they are read.
            ServerState::Ready if self.is_listing && *self.lifecycle.state() != SourceState::Ready => {
                SourceState::Starting
            }
            // Calls of tools that the operator wrote down need no list.
            ServerState::Ready if self.is_listing || self.failure.is_none() => SourceState::Ready,
            ServerState::Ready => failed(None),
            ServerState::Stopped => SourceState::Stopped,
            _ => failed(Some(client)),
        }
    }
}

/// Guard of the first reading of lists.
pub(crate) struct FirstListing<'a>(&'a ServerLifecycle);

impl Drop for FirstListing<'_> {
    fn drop(&mut self) {
        self.0.change(|facts| facts.is_listing = false);
    }
}

impl fmt::Debug for ServerLifecycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.facts().lifecycle)
    }
}
