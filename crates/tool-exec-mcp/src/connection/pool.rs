use std::{
    collections::HashMap,
    mem,
    pin::pin,
    ptr,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tool_core::{CallContext, ClientKey};

use super::{
    PoolKey, ServerConnection,
    call_slots::{CallSlot, Reuse},
    wait_queue::{OpenReason, WaitQueue},
};
use crate::notifications::ClientFilters;

/// Pool of the dedicated connections to one server.
pub(crate) struct ConnectionPool {
    /// Name of the server.
    pub(crate) server: String,
    state: Mutex<PoolState>,
    /// Notifies when a connection has been closed.
    pub(crate) closed: Notify,
    /// Notifies when a surplus connection has been opened, which is closed sooner than others.
    surplus: Arc<Notify>,
    /// Subscriptions of clients. The oldest connection of a client with subscriptions stays open.
    client_filters: Arc<ClientFilters>,
}

#[derive(Default)]
pub(crate) struct PoolState {
    pub(crate) by_client: HashMap<PoolKey, Vec<Arc<ServerConnection>>>,
    /// Calls that wait for a connection of their client.
    pub(crate) queues: HashMap<PoolKey, WaitQueue>,
    /// Number of calls that ever waited.
    pub(crate) n_calls: u64,
    /// Duration of the last opening.
    pub(crate) last_start: Duration,
    pub(crate) is_stopped: bool,
    /// Number of connections, including those that are being closed.
    pub(crate) n: usize,
    pub(crate) n_closing: usize,
    /// `true` if a task closes idle connections.
    has_reaper: bool,
    /// Tasks that close connections.
    closing: JoinSet<()>,
}

/// Result of trying to acquire a slot.
enum TryAcquire {
    Acquired(Arc<ServerConnection>, CallSlot),
    /// A connection is being closed and will make room.
    Closing,
    Full,
}

/// Idle time after which a connection is closed.
const IDLE_LIMIT: Duration = Duration::from_secs(300);
/// Idle time after which a client's connection other than its oldest is closed.
const SURPLUS_IDLE_LIMIT: Duration = Duration::from_secs(30);

impl ConnectionPool {
    pub(crate) fn new(server: &str, client_filters: &Arc<ClientFilters>) -> Arc<Self> {
        Arc::new(Self {
            server: server.to_owned(),
            state: Mutex::default(),
            closed: Notify::new(),
            surplus: Arc::default(),
            client_filters: client_filters.clone(),
        })
    }

    /// Acquires a slot on a connection of the client, opened by `open` if none is usable. Returns `None` if there are
    /// `most` connections and all are in use. A connection that is being closed still counts: the call waits until it
    /// is closed.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        client: &PoolKey,
        cx: &CallContext,
        most: usize,
        open: impl Fn() -> Arc<ServerConnection>,
    ) -> Option<(Arc<ServerConnection>, CallSlot)> {
        loop {
            let mut closed = pin!(self.closed.notified());
            closed.as_mut().enable();
            match self.try_acquire(client, cx, most, &open) {
                TryAcquire::Acquired(connection, slot) => return Some((connection, slot)),
                TryAcquire::Full => return None,
                TryAcquire::Closing => closed.await,
            }
        }
    }

    /// Tries to acquire a slot without waiting.
    fn try_acquire(
        self: &Arc<Self>,
        client: &PoolKey,
        cx: &CallContext,
        most: usize,
        open: impl Fn() -> Arc<ServerConnection>,
    ) -> TryAcquire {
        let mut state = self.state();
        let connection = match state.find_usable(self, client, cx) {
            Some(connection) => connection,
            None if state.n < most => {
                let connection = self.insert(&mut state, client, open());
                self.log_opening(&state, &OpenReason::First);
                connection
            }
            None if state.n_closing > 0 || state.close_longest_idle(self) => return TryAcquire::Closing,
            None => return TryAcquire::Full,
        };
        // Within the lock, before anyone else can see that it is idle.
        let slot = connection.slots.begin(cx);
        TryAcquire::Acquired(connection, slot)
    }

    pub(crate) fn insert(
        self: &Arc<Self>,
        state: &mut PoolState,
        client: &PoolKey,
        connection: Arc<ServerConnection>,
    ) -> Arc<ServerConnection> {
        if client.is_exclusive {
            let (pool, client) = (Arc::downgrade(self), client.clone());
            connection.slots.on_free(move || {
                if let Some(pool) = pool.upgrade() {
                    pool.grant_freed(&client);
                }
            });
        }
        let of_client = state.by_client.entry(client.clone()).or_default();
        of_client.push(connection.clone());
        if of_client.len() > 1 {
            self.surplus.notify_one();
        }
        state.n += 1;
        if !state.has_reaper {
            state.has_reaper = true;
            tokio::spawn(reap_idle(Arc::downgrade(self), self.surplus.clone()));
        }
        connection
    }

    pub(crate) fn log_opening(&self, state: &PoolState, reason: &OpenReason) {
        let (server, n_open) = (&self.server, state.n - state.n_closing);
        tracing::info!(server, n_open, "opening a dedicated connection: {reason}");
    }

    /// Returns the connections of this key.
    pub(crate) fn for_key(&self, client: &PoolKey) -> Vec<Arc<ServerConnection>> {
        self.state().by_client.get(client).cloned().unwrap_or_default()
    }

    /// Returns the connections of a client.
    pub(crate) fn for_client(&self, key: &ClientKey) -> Vec<Arc<ServerConnection>> {
        let state = self.state();
        let of_client = state
            .by_client
            .iter()
            .filter(|(client, _)| client.identity.key == *key);
        of_client
            .flat_map(|(_, connections)| connections.clone())
            .collect()
    }

    /// Closes the idle connections of a client.
    pub(crate) fn close_idle_of(self: &Arc<Self>, key: &ClientKey) {
        self.state().close_where(self, |client, connection| {
            client.identity.key == *key && connection.slots.idle_since().is_some()
        });
    }

    /// Returns all connections.
    pub(crate) fn all(&self) -> Vec<Arc<ServerConnection>> {
        self.state().by_client.values().flatten().cloned().collect()
    }

    /// Number of connections, without those that are being closed.
    pub(crate) fn len(&self) -> usize {
        let state = self.state();
        state.n - state.n_closing
    }

    /// Number of connections in use.
    pub(crate) fn n_in_use(&self) -> usize {
        let state = self.state();
        let all = state.by_client.values().flatten();
        all.filter(|connection| connection.slots.idle_since().is_none())
            .count()
    }

    /// Closes all connections, and waits until they are closed.
    pub(crate) async fn shutdown(self: &Arc<Self>) {
        let closing = {
            let mut state = self.state();
            state.is_stopped = true;
            state.close_where(self, |_, _| true);
            Self::wake_all(&state);
            mem::take(&mut state.closing)
        };
        closing.join_all().await;
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock()
    }

    fn remove_closed(&self) {
        let mut state = self.state();
        state.n -= 1;
        state.n_closing -= 1;
        drop(state);
        self.closed.notify_waiters();
    }
}

impl PoolState {
    /// Returns a connection that the client's next call can use. Closes those on which another client, or possibly
    /// another, abandoned a call: the server's questions about that call would reach the next caller.
    fn find_usable(
        &mut self,
        pool: &Arc<ConnectionPool>,
        client: &PoolKey,
        cx: &CallContext,
    ) -> Option<Arc<ServerConnection>> {
        let connections = self.by_client.get(client)?;
        if let ClientKey::Session(_) = client.identity.key {
            return connections.first().cloned();
        }
        let asker = cx.origin.ask.as_ref().map(|asker| asker.client().client());
        let reuse = |connection: &ServerConnection| connection.slots.reuse(asker.as_ref());
        let mut has_abandoned = false;
        let mut candidates = connections.iter();
        let found = candidates.find(|connection| match reuse(connection) {
            Reuse::Idle | Reuse::InUse => true,
            Reuse::Abandoned => {
                has_abandoned = true;
                false
            }
        });
        let found = found.cloned();
        if has_abandoned {
            self.close_where(pool, |of, connection| {
                of == client && reuse(connection) == Reuse::Abandoned
            });
        }
        found
    }

    pub(crate) fn close_where(
        &mut self,
        pool: &Arc<ConnectionPool>,
        is_obsolete: impl Fn(&PoolKey, &ServerConnection) -> bool,
    ) {
        let mut obsolete = Vec::new();
        self.by_client.retain(|client, connections| {
            obsolete.extend(connections.extract_if(.., |connection| is_obsolete(client, connection)));
            !connections.is_empty()
        });
        self.n_closing += obsolete.len();
        while self.closing.try_join_next().is_some() {}
        for connection in obsolete {
            let pool = Arc::downgrade(pool);
            self.closing.spawn(async move {
                connection.upstream.shutdown().await;
                if let Some(pool) = pool.upgrade() {
                    pool.remove_closed();
                }
            });
        }
    }

    /// Closes the connection that has been idle longest. A client's surplus connections go first, and connections with
    /// subscriptions last. A connection that is being opened is in use. Returns `false` if none is idle.
    pub(crate) fn close_longest_idle(&mut self, pool: &Arc<ConnectionPool>) -> bool {
        let without_waiters = self
            .by_client
            .iter()
            .filter(|(client, _)| !self.queues.contains_key(client));
        let candidates = without_waiters.flat_map(|(client, connections)| {
            let is_last = connections.len() == 1;
            let has_subscriptions = is_last && pool.client_filters.has_dedicated(client);
            connections
                .iter()
                .map(move |connection| ((is_last, has_subscriptions), connection))
        });
        let idle = candidates
            .filter_map(|(order, connection)| Some(((order, connection.slots.idle_since()?), connection)));
        let Some((_, longest)) = idle.min_by_key(|(order, _)| *order) else {
            return false;
        };
        let longest = longest.clone();
        self.close_where(pool, |_, connection| ptr::eq(connection, &*longest));
        true
    }

    /// Closes connections that have been idle for too long. Returns when to look again, or `None` if no connection is
    /// left.
    fn close_idle(&mut self, pool: &Arc<ConnectionPool>, now: Instant) -> Option<Instant> {
        let limit =
            |of_client: &[Arc<ServerConnection>], connection: &ServerConnection| match of_client.first() {
                Some(oldest) if !ptr::eq(&**oldest, connection) => SURPLUS_IDLE_LIMIT,
                _ => IDLE_LIMIT,
            };
        let all = |state: &Self| -> Vec<_> {
            let of_each = state.by_client.iter().flat_map(|(client, own)| {
                let has_subscriptions = pool.client_filters.has_dedicated(client);
                own.iter().enumerate().map(move |(index, connection)| {
                    let is_pinned = index == 0 && has_subscriptions;
                    let idle = connection.slots.idle_since().filter(|_| !is_pinned);
                    (Arc::clone(connection), idle, limit(own, connection))
                })
            });
            of_each.collect()
        };
        let obsolete: Vec<_> = all(self)
            .into_iter()
            .filter(|(_, idle, limit)| idle.is_some_and(|since| since + *limit <= now))
            .collect();
        self.close_where(pool, |_, connection| {
            obsolete.iter().any(|(closed, ..)| ptr::eq(&**closed, connection))
        });
        let left = all(self).into_iter();
        let next = left.map(|(_, idle, limit)| idle.unwrap_or(now) + limit).min();
        self.has_reaper = next.is_some();
        next
    }
}

/// Closes idle connections for as long as there are connections.
async fn reap_idle(pool: Weak<ConnectionPool>, surplus: Arc<Notify>) {
    loop {
        let Some(pool) = pool.upgrade() else { return };
        let Some(next) = pool.state().close_idle(&pool, Instant::now()) else {
            return;
        };
        drop(pool);
        tokio::select! {
            () = sleep_until(next) => {}
            () = surplus.notified() => {}
        }
    }
}
