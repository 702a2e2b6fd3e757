use std::{cmp::Reverse, collections::HashMap, sync::Arc, time::Duration};

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::{
    news::News,
    resumable::{Budget, Resumables},
};
use crate::{
    Notifier, Peer, Principal,
    client::{Client, Presence},
    in_flight::InFlight,
};

/// A legacy client's state over HTTP.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: Arc<str>,
    pub(super) presence: Presence,
    pub(super) client: Arc<Client>,
    pub(super) in_flight: Arc<InFlight>,
    pub(super) streams: Resumables,
    /// What the client is told beside its answers.
    pub(super) news: Arc<News>,
    principal: Principal,
    last_used: Mutex<Instant>,
}

/// All ids in it are random and ours, so that nobody can make them collide: any hash will do.
type ById = HashMap<Arc<str>, Arc<Session>, RandomState>;

/// The sessions of one endpoint: bounded in number, ended when idle for long.
#[derive(Debug)]
pub(super) struct Sessions {
    open: Mutex<Open>,
    max: usize,
    idle: Duration,
    notices: Notifier,
    budget: Arc<Budget>,
}

#[derive(Debug, Default)]
struct Open {
    by_id: ById,
    /// Whether a task ends those that are over.
    is_watched: bool,
}

impl Sessions {
    pub(super) fn new(max: usize, idle: Duration, notices: Notifier) -> Self {
        Self {
            open: Mutex::default(),
            max,
            idle,
            notices,
            budget: Arc::default(),
        }
    }

    /// Opens a session; nothing when every one whose place it could take is at work.
    pub(super) fn open(
        self: &Arc<Self>,
        client: Client,
        principal: Principal,
        presence: Presence,
    ) -> Option<Arc<Session>> {
        let budget = Arc::clone(&self.budget);
        let session = Arc::new(Session {
            id: random_id()?,
            presence,
            in_flight: Arc::default(),
            streams: Resumables::new(Arc::clone(&budget)),
            news: Arc::new(News::new(Arc::clone(&client.wants), budget)),
            client: Arc::new(client),
            principal,
            last_used: Mutex::new(Instant::now()),
        });
        let mut open = self.open.lock();
        let mut left = None;
        if open.by_id.len() >= self.max {
            let id = Arc::clone(&open.to_leave(&session.principal)?.id);
            left = open.by_id.remove(&id);
        }
        open.by_id.insert(Arc::clone(&session.id), Arc::clone(&session));
        let is_watched = std::mem::replace(&mut open.is_watched, true);
        drop(open);
        // Not under the lock: the service is told of its end.
        drop(left);
        let peer = Peer {
            connection: Some(session.presence.number()),
            principal: session.principal.clone(),
            capabilities: session.client.capabilities.clone(),
        };
        self.notices.keep(&session.news, &session.client.wants, peer);
        if !is_watched {
            self.watch();
        }
        Some(session)
    }

    /// The session with this id, if it is this principal's. Another's looks as if it did not exist.
    pub(super) fn get(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        let session = self.open.lock().by_id.get(id).cloned();
        let session = session.filter(|session| session.principal == *principal)?;
        if session.is_over(Instant::now(), self.idle) {
            self.close(&session);
            return None;
        }
        session.touch();
        Some(session)
    }

    /// Ends a session: what is in flight is cancelled, its stream ends.
    pub(super) fn close(&self, session: &Session) {
        let closed = self.open.lock().by_id.remove(&session.id);
        session.in_flight.cancel_all();
        session.news.end();
        drop(closed);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.open.lock().by_id.len()
    }

    /// Ends every stream on which clients listen, so that connections can close.
    pub(super) fn end_streams(&self) {
        for session in self.open.lock().by_id.values() {
            session.news.end();
        }
    }

    /// Ends sessions when they are over, for as long as there are any.
    fn watch(self: &Arc<Self>) {
        let sessions = Arc::downgrade(self);
        tokio::spawn(async move {
            while let Some(pause) = sessions.upgrade().and_then(|sessions| sessions.sweep()) {
                sleep(pause).await;
            }
        });
    }

    /// Ends those that are over, and tells when the next one may be; nothing when none is left.
    fn sweep(&self) -> Option<Duration> {
        let now = Instant::now();
        let mut open = self.open.lock();
        let over: Vec<_> = open
            .by_id
            .extract_if(|_, session| session.is_over(now, self.idle))
            .collect();
        for (_, session) in &over {
            session.news.end();
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
        open.is_watched = pause.is_some();
        drop(open);
        // Not under the lock: the service is told of their end.
        drop(over);
        pause.map(|pause| pause.max(SHORTEST_PAUSE))
    }
}

impl Open {
    /// The session that makes room for one more of this principal: of those of the principal that has the most, the one
    /// that has been idle longest. Who has no fewer than another takes none from that one: nobody takes all.
    fn to_leave(&self, principal: &Principal) -> Option<&Arc<Session>> {
        let mut counts: HashMap<&Principal, usize> = HashMap::new();
        for session in self.by_id.values() {
            *counts.entry(&session.principal).or_default() += 1;
        }
        let count = |principal: &Principal| counts.get(principal).copied().unwrap_or_default();
        let n_own = count(principal);
        let may_leave = |session: &&Arc<Session>| {
            session.is_idle() && (session.principal == *principal || count(&session.principal) > n_own)
        };
        let idle = self.by_id.values().filter(may_leave);
        idle.min_by_key(|session| (Reverse(count(&session.principal)), session.last_used()))
    }
}

/// How often sessions are looked at, at most.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

impl Session {
    /// Notes that the client is there.
    pub(super) fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    fn last_used(&self) -> Instant {
        let used = *self.last_used.lock();
        self.news.left().map_or(used, |left| left.max(used))
    }

    fn is_idle(&self) -> bool {
        !self.news.is_read() && self.in_flight.is_empty()
    }

    fn is_over(&self, now: Instant, idle: Duration) -> bool {
        now.saturating_duration_since(self.last_used()) >= idle && self.is_idle()
    }
}

/// 128 random bits as hexadecimal digits; nothing when the system has no randomness to give.
pub(super) fn random_id() -> Option<Arc<str>> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(format!("{:032x}", u128::from_be_bytes(bytes)).into())
}
