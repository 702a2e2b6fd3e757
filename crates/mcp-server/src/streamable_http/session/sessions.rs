use std::{cmp::Reverse, collections::HashMap, sync::Arc, time::Duration};

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::resumable::ResumableStreams;
use crate::{
    Notifier, Peer, Principal,
    client::{ConnectionHandle, LegacyClient},
    limits::ByteBudget,
    notifications::SessionQueue,
    request::InFlight,
};

/// State of a legacy client over HTTP.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: Arc<str>,
    pub(crate) handle: ConnectionHandle,
    pub(crate) client: Arc<LegacyClient>,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) streams: ResumableStreams,
    /// Notifications to the client.
    pub(crate) queue: Arc<SessionQueue>,
    principal: Principal,
    last_used: Mutex<Instant>,
}

/// Sessions by their ids, which are random and ours: nobody can make them collide, so that any hash function will do.
type SessionsById = HashMap<Arc<str>, Arc<Session>, RandomState>;

/// Sessions of one endpoint, bounded in number, and ended when they have been idle for long.
#[derive(Debug)]
pub(crate) struct Sessions {
    open: Mutex<OpenSessions>,
    max: usize,
    idle: Duration,
    notifier: Notifier,
    budget: Arc<ByteBudget>,
}

#[derive(Debug, Default)]
struct OpenSessions {
    by_id: SessionsById,
    /// `true` while a task ends idle sessions.
    is_swept: bool,
}

impl Sessions {
    pub(crate) fn new(max: usize, idle: Duration, notifier: Notifier) -> Self {
        Self {
            open: Mutex::default(),
            max,
            idle,
            notifier,
            budget: Arc::default(),
        }
    }

    /// Opens a session. Returns `None` if there is no room, and no idle session to make room.
    pub(crate) fn open(
        self: &Arc<Self>,
        client: LegacyClient,
        principal: Principal,
        handle: ConnectionHandle,
    ) -> Option<Arc<Session>> {
        let budget = Arc::clone(&self.budget);
        let session = Arc::new(Session {
            id: random_id()?,
            handle,
            in_flight: Arc::default(),
            streams: ResumableStreams::new(Arc::clone(&budget)),
            queue: Arc::new(SessionQueue::new(Arc::clone(&client.filter), budget)),
            client: Arc::new(client),
            principal,
            last_used: Mutex::new(Instant::now()),
        });
        let mut open = self.open.lock();
        let mut evicted = None;
        if open.by_id.len() >= self.max {
            let id = Arc::clone(&open.to_evict(&session.principal)?.id);
            evicted = open.by_id.remove(&id);
        }
        open.by_id.insert(Arc::clone(&session.id), Arc::clone(&session));
        let is_swept = std::mem::replace(&mut open.is_swept, true);
        drop(open);
        // Without the lock: the service is notified of its end.
        drop(evicted);
        let peer = Peer {
            connection: Some(session.handle.number()),
            principal: session.principal.clone(),
            capabilities: session.client.capabilities.clone(),
        };
        self.notifier.add_session(&session.queue, peer);
        if !is_swept {
            self.start_sweeping();
        }
        Some(session)
    }

    /// Returns the session with this id, if it belongs to this principal. Sessions of others look as if they did not exist.
    pub(crate) fn get(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        let session = self.open.lock().by_id.get(id).cloned();
        let session = session.filter(|session| session.principal == *principal)?;
        if session.is_over(Instant::now(), self.idle) {
            self.close(&session);
            return None;
        }
        session.touch();
        Some(session)
    }

    /// Ends a session: cancels its requests, and ends its stream.
    pub(crate) fn close(&self, session: &Session) {
        let closed = self.open.lock().by_id.remove(&session.id);
        session.in_flight.cancel_all();
        session.queue.end();
        drop(closed);
    }

    /// Returns the number of sessions.
    pub(crate) fn len(&self) -> usize {
        self.open.lock().by_id.len()
    }

    /// Ends all streams on which clients listen, so that connections can close.
    pub(crate) fn end_streams(&self) {
        for session in self.open.lock().by_id.values() {
            session.queue.end();
        }
    }

    /// Starts the task that ends idle sessions, which runs as long as there are any.
    fn start_sweeping(self: &Arc<Self>) {
        let sessions = Arc::downgrade(self);
        tokio::spawn(async move {
            while let Some(pause) = sessions.upgrade().and_then(|sessions| sessions.sweep()) {
                sleep(pause).await;
            }
        });
    }

    /// Ends idle sessions. Returns the time until the next one may have been idle for long, or `None` if none is left.
    fn sweep(&self) -> Option<Duration> {
        let now = Instant::now();
        let mut open = self.open.lock();
        let ended: Vec<_> = open
            .by_id
            .extract_if(|_, session| session.is_over(now, self.idle))
            .collect();
        for (_, session) in &ended {
            session.queue.end();
        }
        let first = open.by_id.values().map(|session| {
            if !session.is_idle() {
                session.touch();
            }
            session.last_used()
        });
        let pause = first
            .min()
            .map(|used| (used + self.idle).saturating_duration_since(now));
        open.is_swept = pause.is_some();
        drop(open);
        // Without the lock: the service is notified of their end.
        drop(ended);
        pause.map(|pause| pause.max(MIN_SWEEP_INTERVAL))
    }
}

impl OpenSessions {
    /// Returns the session that makes room for one more of this principal: the longest idle session of the principal with the
    /// most sessions. A principal evicts only its own sessions, or those of principals with more sessions than it has, so
    /// that none can take all.
    fn to_evict(&self, principal: &Principal) -> Option<&Arc<Session>> {
        let mut counts: HashMap<&Principal, usize> = HashMap::new();
        for session in self.by_id.values() {
            *counts.entry(&session.principal).or_default() += 1;
        }
        let count = |principal: &Principal| counts.get(principal).copied().unwrap_or_default();
        let n_own = count(principal);
        let may_be_evicted = |session: &&Arc<Session>| {
            session.is_idle() && (session.principal == *principal || count(&session.principal) > n_own)
        };
        let idle = self.by_id.values().filter(may_be_evicted);
        idle.min_by_key(|session| (Reverse(count(&session.principal)), session.last_used()))
    }
}

/// Minimum interval of the sweeps.
const MIN_SWEEP_INTERVAL: Duration = Duration::from_millis(10);

impl Session {
    /// Records that the client has used the session.
    pub(crate) fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    fn last_used(&self) -> Instant {
        let used = *self.last_used.lock();
        self.queue.closed_at().map_or(used, |closed| closed.max(used))
    }

    fn is_idle(&self) -> bool {
        !self.queue.is_read() && self.in_flight.is_empty()
    }

    fn is_over(&self, now: Instant, idle: Duration) -> bool {
        now.saturating_duration_since(self.last_used()) >= idle && self.is_idle()
    }
}

/// Returns 128 random bits as hexadecimal digits, or `None` if the system has no randomness to give.
pub(crate) fn random_id() -> Option<Arc<str>> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(format!("{:032x}", u128::from_be_bytes(bytes)).into())
}
