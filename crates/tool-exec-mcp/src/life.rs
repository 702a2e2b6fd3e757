use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use mcp_client::{ServerState, ServerStatus};
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    runtime::Handle,
    sync::{mpsc, watch},
    time,
};
use tool_core::{Instant, Lifecycle, SourceChange, SourceState, SourceStatus, Update};

use crate::updates::Updates;

/// Where a server stands as a source of tools: by the state of its connection, and by what came of the list of its tools.
///
/// Its [`Lifecycle`] changes with each of them, before anybody sees what came of it. What changed is told by a task, since
/// the connection cannot wait for those who are told.
pub(crate) struct Life {
    facts: Mutex<Facts>,
    start: time::Instant,
    changes: mpsc::UnboundedSender<SourceChange>,
    untold: Mutex<Option<mpsc::UnboundedReceiver<SourceChange>>>,
    is_told: AtomicBool,
    updates: Arc<Updates>,
    /// Whether the shared connection is open.
    is_running: watch::Sender<bool>,
}

struct Facts {
    lifecycle: Lifecycle,
    /// The shared connection; nothing before anyone has needed it.
    client: Option<Client>,
    /// Whether the lists are being read for the first time.
    is_listing: bool,
    /// Whether they were read once.
    is_listed: bool,
    /// Why they could not be read the last time.
    failure: Option<String>,
    /// Not tried again before this instant, and how often that was put off in a row.
    rest: Option<(time::Instant, u32)>,
}

struct Client {
    state: ServerState,
    reason: Option<String>,
}

/// How long lists are left alone that could not be read: twice as long each time, up to the longest.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

impl Life {
    pub(crate) fn new(source: &str, updates: Arc<Updates>) -> Arc<Self> {
        let (changes, untold) = mpsc::unbounded_channel();
        Arc::new(Self {
            facts: Mutex::new(Facts {
                lifecycle: Lifecycle::new(source, Instant::default()),
                client: None,
                is_listing: false,
                is_listed: false,
                failure: None,
                rest: None,
            }),
            start: time::Instant::now(),
            changes,
            untold: Mutex::new(Some(untold)),
            is_told: AtomicBool::new(false),
            updates,
            is_running: watch::Sender::default(),
        })
    }

    /// Whether the shared connection is open, and tells when that changes.
    pub(crate) fn is_running(&self) -> watch::Receiver<bool> {
        self.is_running.subscribe()
    }

    /// The connection is like this from now on.
    pub(crate) fn client_is(&self, status: &ServerStatus) {
        self.is_running.send_replace(status.state == ServerState::Ready);
        self.change(|facts| {
            facts.client = Some(Client {
                state: status.state,
                reason: status.reason.clone(),
            });
        });
    }

    /// The lists are being read for the first time, until what comes of it is dropped.
    pub(crate) fn begin_listing(&self) -> Listing<'_> {
        self.change(|facts| facts.is_listing = true);
        Listing(self)
    }

    /// The lists were read, or could not be read and why.
    pub(crate) fn listed(&self, result: Result<(), String>) {
        self.change(|facts| match result {
            Ok(()) => {
                facts.is_listed = true;
                (facts.failure, facts.rest) = (None, None);
            }
            Err(reason) => {
                facts.failure = Some(reason);
                facts.rest = facts.next_rest();
            }
        });
    }

    /// How long the lists are left alone that could not be read.
    pub(crate) fn rest(&self) -> Option<Duration> {
        let (until, _) = self.facts().rest?;
        let left = until.checked_duration_since(time::Instant::now())?;
        (!left.is_zero()).then_some(left)
    }

    /// How the server is, whose client says this of it.
    pub(crate) fn status(&self, client: Option<&ServerStatus>) -> SourceStatus {
        let now = self.now();
        let status = self.facts().lifecycle.status(now);
        let retry_in = client.and_then(|client| client.retry_in);
        SourceStatus {
            retry_in: retry_in.or_else(|| self.rest()),
            ..status
        }
    }

    fn change(&self, note: impl FnOnce(&mut Facts)) {
        let mut facts = self.facts();
        note(&mut facts);
        let state = facts.state();
        let Some(change) = facts.lifecycle.enter(state, self.now()) else {
            return;
        };
        // Within the lock, so that changes are told in their order. Nobody is told any more when this is gone.
        let _ = self.changes.send(change);
        drop(facts);
        self.tell();
    }

    /// Sees to it that changes are told.
    fn tell(&self) {
        if self.is_told.load(Ordering::Relaxed) {
            return;
        }
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let untold = self.untold.lock().take();
        let Some(mut untold) = untold else { return };
        self.is_told.store(true, Ordering::Relaxed);
        let updates = self.updates.clone();
        runtime.spawn(async move {
            while let Some(change) = untold.recv().await {
                updates.tell(&Update::State(change));
            }
        });
    }

    fn now(&self) -> Instant {
        Instant::since_start(self.start.elapsed())
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock()
    }
}

impl Facts {
    /// Until when they are left alone after another failure: a server that does not run rests already.
    fn next_rest(&self) -> Option<(time::Instant, u32)> {
        let n = self.rest.map_or(0, |(_, n)| n);
        let pause = match &self.client {
            // What it is started with is missing, which costs little to find out.
            None => SHORTEST,
            Some(client) if client.state == ServerState::Ready => {
                SHORTEST.saturating_mul(1 << n.min(6)).min(LONGEST)
            }
            Some(_) => return None,
        };
        Some((time::Instant::now() + pause, n.saturating_add(1)))
    }

    fn state(&self) -> SourceState {
        let failed = |client: Option<&Client>| {
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
            // What was ready before the lists were wanted is so while they are read.
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

/// The first reading of lists.
pub(crate) struct Listing<'a>(&'a Life);

impl Drop for Listing<'_> {
    fn drop(&mut self) {
        self.0.change(|facts| facts.is_listing = false);
    }
}

impl fmt::Debug for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.facts().lifecycle)
    }
}
