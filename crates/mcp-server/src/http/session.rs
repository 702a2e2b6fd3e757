use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use foldhash::fast::RandomState;
use tokio::{sync::mpsc, time::Instant};

use super::resumable::{Budget, Resumables};
use crate::{
    Notices, Principal,
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
    principal: Principal,
    last_used: Mutex<Instant>,
    /// The stream on which the client listens, if it does.
    listener: Mutex<Option<mpsc::Sender<Vec<u8>>>>,
}

/// All ids in it are random and ours, so that nobody can make them collide: any hash will do.
type ById = HashMap<Arc<str>, Arc<Session>, RandomState>;

/// The sessions of one endpoint: bounded in number, gone when idle for long.
#[derive(Debug)]
pub(super) struct Sessions {
    by_id: Mutex<ById>,
    max: usize,
    idle: Duration,
    budget: Arc<Budget>,
}

impl Sessions {
    pub(super) fn new(max: usize, idle: Duration) -> Self {
        Self {
            by_id: Mutex::default(),
            max,
            idle,
            budget: Arc::default(),
        }
    }

    /// Opens a session; nothing when every one that there is room for is at work.
    pub(super) fn open(
        &self,
        client: Client,
        principal: Principal,
        presence: Presence,
    ) -> Option<Arc<Session>> {
        let now = Instant::now();
        let session = Arc::new(Session {
            id: random_id()?,
            presence,
            client: Arc::new(client),
            in_flight: Arc::default(),
            streams: Resumables::new(Arc::clone(&self.budget)),
            principal,
            last_used: Mutex::new(now),
            listener: Mutex::default(),
        });
        let mut by_id = self.lock();
        if by_id.len() >= self.max {
            by_id.retain(|_, session| !session.is_over(now, self.idle));
        }
        if by_id.len() >= self.max {
            let idle = by_id.values().filter(|session| session.is_idle());
            let oldest = idle.min_by_key(|session| session.last_used())?;
            let oldest = Arc::clone(&oldest.id);
            by_id.remove(&oldest);
        }
        by_id.insert(Arc::clone(&session.id), Arc::clone(&session));
        Some(session)
    }

    /// The session with this id, if it is this principal's. Another's looks as if it did not exist.
    pub(super) fn get(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        let now = Instant::now();
        let mut by_id = self.lock();
        let session = by_id.get(id).filter(|session| session.principal == *principal)?;
        if session.is_over(now, self.idle) {
            by_id.remove(id);
            return None;
        }
        let session = Arc::clone(session);
        *session.last_used.lock().unwrap_or_else(PoisonError::into_inner) = now;
        Some(session)
    }

    /// Ends a session: what is in flight is cancelled, its stream ends.
    pub(super) fn close(&self, session: &Session) {
        self.lock().remove(&session.id);
        session.in_flight.cancel_all();
        session
            .listener
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }

    /// How many there are, those included that are over and were not yet missed.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Ends every stream on which clients listen, so that connections can close.
    pub(super) fn end_streams(&self) {
        for session in self.lock().values() {
            session
                .listener
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
        }
    }

    fn lock(&self) -> MutexGuard<'_, ById> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Begins to listen to notices; nothing when the client listens already.
    pub(super) fn listen(&self, notices: &Notices) -> Option<mpsc::Receiver<Vec<u8>>> {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if listener.as_ref().is_some_and(|listener| !listener.is_closed()) {
            return None;
        }
        let (sender, receiver) = mpsc::channel(64);
        notices.subscribe(&sender, &self.client.wants, Some(self.presence.number()));
        *listener = Some(sender);
        Some(receiver)
    }

    fn last_used(&self) -> Instant {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_idle(&self) -> bool {
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        let listens = listener.as_ref().is_some_and(|listener| !listener.is_closed());
        !listens && self.in_flight.is_empty()
    }

    fn is_over(&self, now: Instant, idle: Duration) -> bool {
        now.saturating_duration_since(self.last_used()) > idle && self.is_idle()
    }
}

/// 128 random bits as hexadecimal digits; nothing when the system has no randomness to give.
pub(super) fn random_id() -> Option<Arc<str>> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(format!("{:032x}", u128::from_be_bytes(bytes)).into())
}
