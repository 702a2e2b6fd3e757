//! Calls that wait for a connection which serves one call at a time.

use std::{collections::VecDeque, fmt, pin::pin, sync::Arc, time::Duration};

use mcp_client::ClientError;
use mcp_wire::Era;
use tokio::{sync::Notify, time::Instant};
use tool_core::{Asker, CallContext, Caller};

use crate::{
    calls::{Seat, Standing},
    line::Line,
    own_lists::Entry,
    pace::at,
    pool::{Client, Lines, Pool},
};

/// The calls of one client that wait, first come first served.
#[derive(Default)]
pub(crate) struct Queue {
    waiters: VecDeque<Waiter>,
    /// Whether a connection is being opened: no second one is opened meanwhile.
    is_opening: bool,
    /// When the last opening ended. Time before that does not count as waiting for a connection that is ready.
    opened: Option<Instant>,
}

struct Waiter {
    number: u64,
    since: Instant,
    entry: Entry,
    asker: Option<Asker>,
    caller: Arc<Caller>,
    wake: Arc<Notify>,
    outcome: Option<Outcome>,
}

/// The end of waiting.
enum Outcome {
    Seated(Arc<Line>, Seat),
    Failed(ClientError),
}

/// The result of waiting for a connection.
pub(crate) enum Turn {
    Seated(Arc<Line>, Seat),
    /// All connections are in use, and no other may be opened.
    Full,
    /// The connection of the client could not be opened.
    Failed(ClientError),
    /// The server was shut down.
    Stopped,
}

/// A call that wants a connection.
pub(crate) struct Wanted<'a> {
    pub(crate) client: &'a Client,
    pub(crate) cx: &'a CallContext,
    pub(crate) entry: Entry,
    /// The number of connections for single clients that there may be.
    pub(crate) most: usize,
    /// Whether the call can be made over the shared connection instead of waiting on.
    pub(crate) may_share: bool,
    pub(crate) open: &'a (dyn Fn() -> Arc<Line> + Sync),
}

enum Step {
    Over(Turn),
    /// Nothing more to do before another event, or this instant.
    Wait(Option<Instant>),
}

/// The reason for which a connection is opened.
pub(crate) enum Reason {
    First,
    Waited(Duration),
    Ended,
}

/// How long a call waits for a connection that is ready before another one is opened.
///
/// A server that takes longer to start is waited for as long as its last start took, up to [`LONGEST_PATIENCE`]: before
/// that, the connection that is in use is likely to be free sooner than another one would be ready. This is the rule of
/// the ski rental problem, whose cost is at most twice the best possible.
const PATIENCE: Duration = Duration::from_millis(250);
const LONGEST_PATIENCE: Duration = Duration::from_secs(5);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("the client has none"),
            Self::Waited(time) => {
                write!(f, "a call waited {} ms for one that is ready", time.as_millis())
            }
            Self::Ended => f.write_str("the one before has ended"),
        }
    }
}

/// The place of a call in a queue. Dropping it gives up the place, and the connection that was granted.
struct Ticket<'a> {
    pool: &'a Arc<Pool>,
    client: &'a Client,
    number: u64,
    wake: Arc<Notify>,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let left = self.pool.lines().leave(self.client, self.number);
        // Not under the lock: a seat that is given up has the next call seated.
        drop(left);
    }
}

impl Pool {
    /// Waits for a connection that serves no other call. Calls of one client are served in the order in which they came.
    ///
    /// # Cancellation
    /// A call that is dropped takes no connection. One that was being opened for it is there for the next call.
    pub(crate) async fn turn(self: &Arc<Self>, wanted: Wanted<'_>) -> Turn {
        let ticket = self.join(&wanted);
        loop {
            let mut closed = pin!(self.closed.notified());
            closed.as_mut().enable();
            let until = match self.step(&ticket, &wanted) {
                Step::Over(turn) => return turn,
                Step::Wait(until) => until,
            };
            tokio::select! {
                () = ticket.wake.notified() => {}
                () = closed => {}
                () = at(until) => {}
            }
        }
    }

    fn join<'a>(self: &'a Arc<Self>, wanted: &Wanted<'a>) -> Ticket<'a> {
        let mut lines = self.lines();
        lines.n_calls += 1;
        let (number, wake) = (lines.n_calls, Arc::new(Notify::new()));
        let queue = lines.queues.entry(wanted.client.clone()).or_default();
        queue.waiters.push_back(Waiter {
            number,
            since: Instant::now(),
            entry: wanted.entry.clone(),
            asker: wanted.cx.origin.ask.clone(),
            caller: wanted.cx.origin.caller.clone(),
            wake: wake.clone(),
            outcome: None,
        });
        Ticket {
            pool: self,
            client: wanted.client,
            number,
            wake,
        }
    }

    fn step(self: &Arc<Self>, ticket: &Ticket<'_>, wanted: &Wanted<'_>) -> Step {
        let mut guard = self.lines();
        let lines = &mut *guard;
        let client = wanted.client;
        if lines.is_stopped {
            return Step::Over(Turn::Stopped);
        }
        lines.assign(self, client);
        match lines.take_outcome(client, ticket.number) {
            Some(Outcome::Seated(line, seat)) => return Step::Over(Turn::Seated(line, seat)),
            Some(Outcome::Failed(error)) => return Step::Over(Turn::Failed(error)),
            None => {}
        }
        let patience = lines.patience();
        let Some(queue) = lines.queues.get(client) else {
            return Step::Over(Turn::Full);
        };
        if queue.is_opening {
            return Step::Wait(None);
        }
        let own = lines.by_client.get(client).map_or(&[][..], Vec::as_slice);
        let has_ended =
            |line: &&Arc<Line>| line.upstream.ready().is_none() && line.calls.idle_since().is_some();
        if let Some(line) = own.iter().find(has_ended).cloned() {
            self.begin_opening(lines, client, line, &Reason::Ended);
            return Step::Wait(None);
        }
        let (is_first, now) = (own.is_empty(), Instant::now());
        let since = queue.waits_since(ticket.number).unwrap_or(now);
        // A call that is made beside another one waits for nothing.
        if !is_first && wanted.cx.is_hedge {
            return Step::Over(Turn::Full);
        }
        if !is_first && now < since + patience {
            return Step::Wait(Some(since + patience));
        }
        if lines.n < wanted.most {
            let line = self.insert(lines, client, (wanted.open)());
            let reason = match is_first {
                true => Reason::First,
                false => Reason::Waited(now - since),
            };
            self.begin_opening(lines, client, line, &reason);
            return Step::Wait(None);
        }
        // Only the first connection of a client takes the place of one that another client may need again.
        let waits = match is_first {
            true => lines.n_closing > 0 || lines.close_longest_idle(self),
            false => !wanted.may_share,
        };
        if waits {
            Step::Wait(None)
        } else {
            Step::Over(Turn::Full)
        }
    }

    /// Opens a connection in a task of its own: nobody who leaves meanwhile breaks it off.
    fn begin_opening(self: &Arc<Self>, lines: &mut Lines, client: &Client, line: Arc<Line>, reason: &Reason) {
        self.log_opening(lines, reason);
        lines.queues.entry(client.clone()).or_default().is_opening = true;
        let (pool, client) = (Arc::downgrade(self), client.clone());
        tokio::spawn(async move {
            let start = Instant::now();
            let opened = line.upstream.connection().await.map(drop);
            if let Some(pool) = pool.upgrade() {
                pool.opened(&client, &line, opened.as_ref(), start.elapsed());
            }
        });
    }

    /// Notes the end of an opening.
    fn opened(
        self: &Arc<Self>,
        client: &Client,
        line: &Arc<Line>,
        opened: Result<&(), &ClientError>,
        took: Duration,
    ) {
        let mut lines = self.lines();
        let is_other = |other: &&Arc<Line>| !Arc::ptr_eq(other, line) && other.upstream.ready().is_some();
        let has_others = lines
            .by_client
            .get(client)
            .is_some_and(|own| own.iter().any(|other| is_other(&other)));
        match opened {
            Ok(_) => lines.last_start = took,
            Err(error) if has_others => {
                tracing::warn!(server = self.server, %error, "a further connection for a client cannot be opened");
                lines.close_where(self, |_, closed| std::ptr::eq(closed, &**line));
            }
            Err(_) => {}
        }
        let queue = lines.queues.entry(client.clone()).or_default();
        queue.is_opening = false;
        queue.opened = Some(Instant::now());
        if let Err(error) = opened
            && !has_others
        {
            for waiter in queue.waiters.iter_mut().filter(|waiter| waiter.outcome.is_none()) {
                waiter.outcome = Some(Outcome::Failed(error.clone()));
            }
        }
        for waiter in &queue.waiters {
            waiter.wake.notify_one();
        }
        lines.assign(self, client);
        lines.forget_empty(client);
    }

    /// A connection of the client serves no call any more.
    pub(crate) fn freed(self: &Arc<Self>, client: &Client) {
        let mut lines = self.lines();
        lines.assign(self, client);
        // Whoever comes first sees to it that there is a connection.
        let queue = lines.queues.get(client);
        let first = queue.and_then(|queue| queue.waiters.iter().find(|waiter| waiter.outcome.is_none()));
        if let Some(first) = first {
            first.wake.notify_one();
        }
    }

    /// Wakes all who wait.
    pub(crate) fn wake_all(lines: &Lines) {
        for waiter in lines.queues.values().flat_map(|queue| &queue.waiters) {
            waiter.wake.notify_one();
        }
    }
}

impl Queue {
    /// Since when a call has waited for a connection that is ready.
    fn waits_since(&self, number: u64) -> Option<Instant> {
        let waiter = self.waiters.iter().find(|waiter| waiter.number == number)?;
        Some(
            self.opened
                .map_or(waiter.since, |opened| opened.max(waiter.since)),
        )
    }
}

impl Lines {
    /// Seats the calls that have waited longest on the connections that are free. A call goes to a connection that lists
    /// what it calls, if any of the client's does.
    fn assign(&mut self, pool: &Arc<Pool>, client: &Client) {
        let Some(queue) = self.queues.get(client) else {
            return;
        };
        if queue.waiters.iter().all(|waiter| waiter.outcome.is_some()) {
            return;
        }
        // What a server asks for a call that was given up would be put to whoever calls next.
        self.close_where(pool, |of, line| {
            of == client && line.calls.standing(None) == Standing::GivenUp
        });
        let (Some(queue), Some(own)) = (self.queues.get_mut(client), self.by_client.get(client)) else {
            return;
        };
        for waiter in queue.waiters.iter_mut().filter(|waiter| waiter.outcome.is_none()) {
            let lists = |line: &Arc<Line>| line.listing.has(&waiter.entry);
            let is_listed = own.len() > 1 && own.iter().any(lists);
            let line = own
                .iter()
                .find(|line| is_free(line) && (!is_listed || lists(line)));
            let Some(line) = line else {
                if is_listed {
                    continue;
                }
                break;
            };
            let seat = line.calls.begin_for(waiter.asker.clone(), &waiter.caller);
            waiter.outcome = Some(Outcome::Seated(line.clone(), seat));
            waiter.wake.notify_one();
        }
    }

    fn take_outcome(&mut self, client: &Client, number: u64) -> Option<Outcome> {
        let queue = self.queues.get_mut(client)?;
        let place = queue.waiters.iter().position(|waiter| waiter.number == number)?;
        queue.waiters[place].outcome.as_ref()?;
        let waiter = queue.waiters.remove(place)?;
        self.forget_empty(client);
        waiter.outcome
    }

    fn leave(&mut self, client: &Client, number: u64) -> Option<Waiter> {
        let queue = self.queues.get_mut(client)?;
        let place = queue.waiters.iter().position(|waiter| waiter.number == number)?;
        let waiter = queue.waiters.remove(place);
        self.forget_empty(client);
        waiter
    }

    fn forget_empty(&mut self, client: &Client) {
        let is_empty = |queue: &Queue| queue.waiters.is_empty() && !queue.is_opening;
        if self.queues.get(client).is_some_and(is_empty) {
            self.queues.remove(client);
        }
    }

    fn patience(&self) -> Duration {
        self.last_start.clamp(PATIENCE, LONGEST_PATIENCE)
    }
}

/// Whether a connection can take a call. One to a modern server takes many: whose question it asks is in its answer.
fn is_free(line: &Line) -> bool {
    let ready = || line.upstream.ready();
    match line.calls.standing(None) {
        Standing::Idle => ready().is_some(),
        Standing::InUse => ready().is_some_and(|connection| connection.server().era() == Era::Modern),
        Standing::GivenUp => false,
    }
}
