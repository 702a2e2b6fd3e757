//! Acquiring a dedicated connection that serves one call at a time: calls wait in a queue for it.

use std::{pin::pin, sync::Arc, time::Duration};

use mcp_client::ClientError;
use mcp_wire::Era;
use tokio::{sync::Notify, time::Instant};
use tool_core::CallContext;

use super::{
    PoolKey, ServerConnection,
    call_slots::{CallSlot, Reuse},
    pool::{ConnectionPool, PoolState},
    wait_queue::{Grant, OpenReason, WaitQueue, Waiter},
};
use crate::{listing::EntryKey, timer::sleep_until_some};

/// Result of waiting for a connection.
pub(crate) enum AcquireResult {
    Acquired(Arc<ServerConnection>, CallSlot),
    /// All connections are in use, and no other may be opened.
    Full,
    /// The connection of the client could not be opened.
    Failed(ClientError),
    /// The server was shut down.
    Stopped,
}

/// Call that wants a connection.
pub(crate) struct AcquireRequest<'a> {
    pub(crate) client: &'a PoolKey,
    pub(crate) cx: &'a CallContext,
    pub(crate) entry: EntryKey,
    /// Maximum number of dedicated connections.
    pub(crate) most: usize,
    /// `true` if the call can use the shared connection instead of waiting on.
    pub(crate) may_share: bool,
    pub(crate) open: &'a (dyn Fn() -> Arc<ServerConnection> + Sync),
}

enum Step {
    Done(AcquireResult),
    /// Wait for another event, or until this instant.
    Wait(Option<Instant>),
}

/// Minimum time that a call waits for a connection that is ready before another one is opened.
///
/// A server that takes longer to start is waited for as long as its last start took, up to [`MAX_PATIENCE`]. Before
/// that, the connection in use is likely to be free sooner than another one would be ready. This is the break-even rule
/// of the ski rental problem (Karlin, Manasse, Rudolph, Sleator: "Competitive Snoopy Caching"), whose cost is at most
/// twice the optimum.
const MIN_PATIENCE: Duration = Duration::from_millis(250);
const MAX_PATIENCE: Duration = Duration::from_secs(5);

/// A call's entry in a queue. Dropping it leaves the queue and releases the connection that was granted.
struct Ticket<'a> {
    pool: &'a Arc<ConnectionPool>,
    client: &'a PoolKey,
    number: u64,
    wake: Arc<Notify>,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let left = self.pool.state().remove_waiter(self.client, self.number);
        // Outside of the lock: releasing a slot grants it to the next call.
        drop(left);
    }
}

impl ConnectionPool {
    /// Waits for a connection that serves no other call. Calls of one client are served in order of arrival.
    ///
    /// # Cancellation
    /// A call that is dropped takes no connection. A connection that was being opened for it stays for the next call.
    pub(crate) async fn acquire_exclusive(self: &Arc<Self>, request: AcquireRequest<'_>) -> AcquireResult {
        let ticket = self.enqueue(&request);
        loop {
            let mut closed = pin!(self.closed.notified());
            closed.as_mut().enable();
            let until = match self.advance(&ticket, &request) {
                Step::Done(result) => return result,
                Step::Wait(until) => until,
            };
            tokio::select! {
                () = ticket.wake.notified() => {}
                () = closed => {}
                () = sleep_until_some(until) => {}
            }
        }
    }

    fn enqueue<'a>(self: &'a Arc<Self>, request: &AcquireRequest<'a>) -> Ticket<'a> {
        let mut state = self.state();
        state.n_calls += 1;
        let (number, wake) = (state.n_calls, Arc::new(Notify::new()));
        let queue = state.queues.entry(request.client.clone()).or_default();
        queue.waiters.push_back(Waiter {
            number,
            since: Instant::now(),
            entry: request.entry.clone(),
            asker: request.cx.origin.ask.clone(),
            caller: request.cx.origin.caller.clone(),
            wake: wake.clone(),
            grant: None,
        });
        Ticket {
            pool: self,
            client: request.client,
            number,
            wake,
        }
    }

    fn advance(self: &Arc<Self>, ticket: &Ticket<'_>, request: &AcquireRequest<'_>) -> Step {
        let mut guard = self.state();
        let state = &mut *guard;
        let client = request.client;
        if state.is_stopped {
            return Step::Done(AcquireResult::Stopped);
        }
        state.grant_slots(self, client);
        match state.take_grant(client, ticket.number) {
            Some(Grant::Acquired(connection, slot)) => {
                return Step::Done(AcquireResult::Acquired(connection, slot));
            }
            Some(Grant::Failed(error)) => return Step::Done(AcquireResult::Failed(error)),
            None => {}
        }
        let patience = state.patience();
        let Some(queue) = state.queues.get(client) else {
            return Step::Done(AcquireResult::Full);
        };
        if queue.is_opening {
            return Step::Wait(None);
        }
        let connections = state.by_client.get(client).map_or(&[][..], Vec::as_slice);
        let has_ended = |connection: &&Arc<ServerConnection>| {
            connection.upstream.ready().is_none() && connection.slots.idle_since().is_some()
        };
        if let Some(connection) = connections.iter().find(has_ended).cloned() {
            self.start_opening(state, client, connection, &OpenReason::Ended);
            return Step::Wait(None);
        }
        let (is_first, now) = (connections.is_empty(), Instant::now());
        let since = queue.waiting_since(ticket.number).unwrap_or(now);
        // A hedged attempt waits for nothing.
        if !is_first && request.cx.is_hedge {
            return Step::Done(AcquireResult::Full);
        }
        if !is_first && now < since + patience {
            return Step::Wait(Some(since + patience));
        }
        if state.n < request.most {
            let connection = self.insert(state, client, (request.open)());
            let reason = match is_first {
                true => OpenReason::First,
                false => OpenReason::Waited(now - since),
            };
            self.start_opening(state, client, connection, &reason);
            return Step::Wait(None);
        }
        // Only the first connection of a client evicts one that another client may need again.
        let waits = match is_first {
            true => state.n_closing > 0 || state.close_longest_idle(self),
            false => !request.may_share,
        };
        if waits {
            Step::Wait(None)
        } else {
            Step::Done(AcquireResult::Full)
        }
    }

    /// Opens a connection in a task of its own, so that a call that leaves meanwhile does not cancel it.
    fn start_opening(
        self: &Arc<Self>,
        state: &mut PoolState,
        client: &PoolKey,
        connection: Arc<ServerConnection>,
        reason: &OpenReason,
    ) {
        self.log_opening(state, reason);
        state.queues.entry(client.clone()).or_default().is_opening = true;
        let (pool, client) = (Arc::downgrade(self), client.clone());
        tokio::spawn(async move {
            let start = Instant::now();
            let opened = connection.upstream.connection().await.map(drop);
            if let Some(pool) = pool.upgrade() {
                pool.finish_opening(&client, &connection, opened.as_ref(), start.elapsed());
            }
        });
    }

    /// Records the end of an opening and wakes the waiting calls.
    fn finish_opening(
        self: &Arc<Self>,
        client: &PoolKey,
        connection: &Arc<ServerConnection>,
        opened: Result<&(), &ClientError>,
        took: Duration,
    ) {
        let mut state = self.state();
        let is_other = |other: &&Arc<ServerConnection>| {
            !Arc::ptr_eq(other, connection) && other.upstream.ready().is_some()
        };
        let has_others = state
            .by_client
            .get(client)
            .is_some_and(|connections| connections.iter().any(|other| is_other(&other)));
        match opened {
            Ok(_) => state.last_start = took,
            Err(error) if has_others => {
                tracing::warn!(server = self.server, %error, "cannot open another dedicated connection");
                state.close_where(self, |_, closed| std::ptr::eq(closed, &**connection));
            }
            Err(_) => {}
        }
        let queue = state.queues.entry(client.clone()).or_default();
        queue.is_opening = false;
        queue.opened = Some(Instant::now());
        if let Err(error) = opened
            && !has_others
        {
            for waiter in queue.waiters.iter_mut().filter(|waiter| waiter.grant.is_none()) {
                waiter.grant = Some(Grant::Failed(error.clone()));
            }
        }
        for waiter in &queue.waiters {
            waiter.wake.notify_one();
        }
        state.grant_slots(self, client);
        state.remove_if_empty(client);
    }

    /// Grants a connection of the client that has become free to the next waiting call.
    pub(crate) fn grant_freed(self: &Arc<Self>, client: &PoolKey) {
        let mut state = self.state();
        state.grant_slots(self, client);
        // The first call in the queue opens a connection if there is none.
        let queue = state.queues.get(client);
        let first = queue.and_then(|queue| queue.waiters.iter().find(|waiter| waiter.grant.is_none()));
        if let Some(first) = first {
            first.wake.notify_one();
        }
    }

    /// Wakes all waiting calls.
    pub(crate) fn wake_all(state: &PoolState) {
        for waiter in state.queues.values().flat_map(|queue| &queue.waiters) {
            waiter.wake.notify_one();
        }
    }
}

impl PoolState {
    /// Grants free connections to the calls that have waited longest. A call gets a connection that lists what it
    /// calls, if any of the client's does.
    fn grant_slots(&mut self, pool: &Arc<ConnectionPool>, client: &PoolKey) {
        let Some(queue) = self.queues.get(client) else {
            return;
        };
        if queue.waiters.iter().all(|waiter| waiter.grant.is_some()) {
            return;
        }
        // A question of the server about an abandoned call would reach the next caller.
        self.close_where(pool, |of, connection| {
            of == client && connection.slots.reuse(None) == Reuse::Abandoned
        });
        let (Some(queue), Some(connections)) = (self.queues.get_mut(client), self.by_client.get(client))
        else {
            return;
        };
        for waiter in queue.waiters.iter_mut().filter(|waiter| waiter.grant.is_none()) {
            let lists = |connection: &Arc<ServerConnection>| connection.lists.has(&waiter.entry);
            let is_listed = connections.len() > 1 && connections.iter().any(lists);
            let connection = connections
                .iter()
                .find(|connection| is_free(connection) && (!is_listed || lists(connection)));
            let Some(connection) = connection else {
                if is_listed {
                    continue;
                }
                break;
            };
            let slot = connection.slots.begin_for(waiter.asker.clone(), &waiter.caller);
            waiter.grant = Some(Grant::Acquired(connection.clone(), slot));
            waiter.wake.notify_one();
        }
    }

    fn take_grant(&mut self, client: &PoolKey, number: u64) -> Option<Grant> {
        let queue = self.queues.get_mut(client)?;
        let index = queue.waiters.iter().position(|waiter| waiter.number == number)?;
        queue.waiters[index].grant.as_ref()?;
        let waiter = queue.waiters.remove(index)?;
        self.remove_if_empty(client);
        waiter.grant
    }

    fn remove_waiter(&mut self, client: &PoolKey, number: u64) -> Option<Waiter> {
        let queue = self.queues.get_mut(client)?;
        let index = queue.waiters.iter().position(|waiter| waiter.number == number)?;
        let waiter = queue.waiters.remove(index);
        self.remove_if_empty(client);
        waiter
    }

    fn remove_if_empty(&mut self, client: &PoolKey) {
        let is_empty = |queue: &WaitQueue| queue.waiters.is_empty() && !queue.is_opening;
        if self.queues.get(client).is_some_and(is_empty) {
            self.queues.remove(client);
        }
    }

    fn patience(&self) -> Duration {
        self.last_start.clamp(MIN_PATIENCE, MAX_PATIENCE)
    }
}

/// Returns `true` if a connection can take a call. A connection to a modern server takes many: its questions come with
/// the result of the call that they belong to.
fn is_free(connection: &ServerConnection) -> bool {
    let ready = || connection.upstream.ready();
    match connection.slots.reuse(None) {
        Reuse::Idle => ready().is_some(),
        Reuse::InUse => ready().is_some_and(|connection| connection.server().era() == Era::Modern),
        Reuse::Abandoned => false,
    }
}
