use std::{
    collections::HashMap,
    mem,
    pin::pin,
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tool_core::{CallContext, ClientGroup, ClientIdentity, ClientKey};

use crate::{
    calls::{Seat, Standing},
    line::Line,
    own_lists::Entry,
};

/// The connections that are kept for single clients.
#[derive(Default)]
pub(crate) struct Pool {
    lines: Mutex<Lines>,
    /// Tells when one has been closed.
    closed: Notify,
}

#[derive(Default)]
struct Lines {
    by_client: HashMap<Client, Vec<Arc<Line>>>,
    /// How many there are, with those that are being closed.
    n: usize,
    n_closing: usize,
    /// Whether a task looks after those that nobody uses.
    tended: bool,
    /// Those that are being closed.
    closing: JoinSet<()>,
}

/// Whom a connection is kept for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    pub(crate) identity: ClientIdentity,
    /// Whether a connection serves one call at a time.
    pub(crate) alone: bool,
    /// Whether it is kept for all clients of the principal.
    pub(crate) is_principal: bool,
}

impl Client {
    /// The clients that the connection serves.
    pub(crate) fn group(&self) -> ClientGroup {
        ClientGroup {
            identity: self.identity.clone(),
            is_principal: self.is_principal,
        }
    }
}

/// Whether there is a place for a call.
enum Seating {
    Place(Arc<Line>, Seat),
    /// When one that is being closed has made room.
    Closing,
    Full,
}

/// How long a connection that nobody uses is kept.
const IDLE: Duration = Duration::from_secs(300);

impl Pool {
    /// A place for a call on a connection of its client, made by `open` if there is none to use; nothing if there are
    /// `most` already and all are in use. One that is being closed still is one: a call waits until it makes room.
    pub(crate) async fn seat(
        self: &Arc<Self>,
        client: &Client,
        cx: &CallContext,
        most: usize,
        open: impl Fn() -> Arc<Line>,
    ) -> Option<(Arc<Line>, Seat)> {
        loop {
            let mut closed = pin!(self.closed.notified());
            closed.as_mut().enable();
            match self.try_seat(client, cx, most, &open) {
                Seating::Place(line, seat) => return Some((line, seat)),
                Seating::Full => return None,
                Seating::Closing => closed.await,
            }
        }
    }

    /// The same without waiting.
    fn try_seat(
        self: &Arc<Self>,
        client: &Client,
        cx: &CallContext,
        most: usize,
        open: impl Fn() -> Arc<Line>,
    ) -> Seating {
        let mut lines = self.lines();
        let line = match lines.usable(self, client, cx) {
            Some(line) => line,
            None if lines.n < most => self.insert(&mut lines, client, open()),
            None if lines.n_closing > 0 || lines.close_longest_idle(self) => return Seating::Closing,
            None => return Seating::Full,
        };
        // Before anyone else can see that it is idle.
        let seat = line.calls.begin(cx);
        Seating::Place(line, seat)
    }

    fn insert(self: &Arc<Self>, lines: &mut Lines, client: &Client, line: Arc<Line>) -> Arc<Line> {
        let of_client = lines.by_client.entry(client.clone()).or_default();
        of_client.push(line.clone());
        lines.n += 1;
        if !lines.tended {
            lines.tended = true;
            tokio::spawn(tend(Arc::downgrade(self)));
        }
        line
    }

    /// The connections that serve this client.
    pub(crate) fn serving(&self, client: &Client) -> Vec<Arc<Line>> {
        self.lines().by_client.get(client).cloned().unwrap_or_default()
    }

    /// The connections of a client.
    pub(crate) fn of(&self, key: &ClientKey) -> Vec<Arc<Line>> {
        let lines = self.lines();
        let of_client = lines
            .by_client
            .iter()
            .filter(|(client, _)| client.identity.key == *key);
        of_client.flat_map(|(_, lines)| lines.clone()).collect()
    }

    /// Closes the connections of a client that are not in use.
    pub(crate) fn close(self: &Arc<Self>, key: &ClientKey) {
        self.lines().close_where(self, |client, line| {
            client.identity.key == *key && line.calls.idle_since().is_some()
        });
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<Line>> {
        self.lines().by_client.values().flatten().cloned().collect()
    }

    /// How many there are, beside those that are being closed.
    pub(crate) fn len(&self) -> usize {
        let lines = self.lines();
        lines.n - lines.n_closing
    }

    /// How many of them are in use.
    pub(crate) fn n_used(&self) -> usize {
        let lines = self.lines();
        let all = lines.by_client.values().flatten();
        all.filter(|line| line.calls.idle_since().is_none()).count()
    }

    /// Closes all of them and waits until they are.
    pub(crate) async fn shutdown(self: &Arc<Self>) {
        let closing = {
            let mut lines = self.lines();
            lines.close_where(self, |_, _| true);
            mem::take(&mut lines.closing)
        };
        closing.join_all().await;
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closed(&self) {
        let mut lines = self.lines();
        lines.n -= 1;
        lines.n_closing -= 1;
        drop(lines);
        self.closed.notify_waiters();
    }
}

impl Lines {
    /// A connection of the client that its next call can use. One on which another client, or perhaps another, gave up
    /// a call is closed instead: what the server asks for that call would be put to whoever calls next.
    fn usable(&mut self, pool: &Arc<Pool>, client: &Client, cx: &CallContext) -> Option<Arc<Line>> {
        let known = self.by_client.get(client)?;
        if let ClientKey::Session(_) = client.identity.key {
            return known.first().cloned();
        }
        let asker = cx.ask.as_ref().map(|asker| asker.client().client());
        // Of several connections, only those may take the call that list what is called, if any of them does.
        let entry = (known.len() > 1).then(|| Entry::of(cx.tool().descriptor()));
        let entry = entry.filter(|entry| known.iter().any(|line| line.listing.has(entry)));
        let is_listed = |line: &Line| entry.as_ref().is_none_or(|entry| line.listing.has(entry));
        let standing = |line: &Line| line.calls.standing(asker.as_ref());
        let mut has_given_up = false;
        let mut known = known.iter();
        let found = known.find(|line| match standing(line) {
            Standing::Idle => is_listed(line),
            Standing::InUse => !client.alone,
            Standing::GivenUp => {
                has_given_up = true;
                false
            }
        });
        let found = found.cloned();
        if has_given_up {
            self.close_where(pool, |of, line| {
                of == client && standing(line) == Standing::GivenUp
            });
        }
        found
    }

    fn close_where(&mut self, pool: &Arc<Pool>, is_over: impl Fn(&Client, &Line) -> bool) {
        let mut over = Vec::new();
        self.by_client.retain(|client, lines| {
            over.extend(lines.extract_if(.., |line| is_over(client, line)));
            !lines.is_empty()
        });
        self.n_closing += over.len();
        while self.closing.try_join_next().is_some() {}
        for line in over {
            let pool = Arc::downgrade(pool);
            self.closing.spawn(async move {
                line.upstream.shutdown().await;
                if let Some(pool) = pool.upgrade() {
                    pool.is_closed();
                }
            });
        }
    }

    fn close_longest_idle(&mut self, pool: &Arc<Pool>) -> bool {
        let idle = self
            .by_client
            .values()
            .flatten()
            .filter_map(|line| Some((line.calls.idle_since()?, line)));
        let Some((_, longest)) = idle.min_by_key(|(since, _)| *since) else {
            return false;
        };
        let longest = longest.clone();
        self.close_where(pool, |_, line| ptr::eq(line, &*longest));
        true
    }

    /// Closes those that nobody has used for long, and says when to look again.
    fn close_idle(&mut self, pool: &Arc<Pool>, now: Instant) -> Option<Instant> {
        self.close_where(pool, |_, line| {
            line.calls.idle_since().is_some_and(|since| since + IDLE <= now)
        });
        let next = self
            .by_client
            .values()
            .flatten()
            .map(|line| line.calls.idle_since().unwrap_or(now) + IDLE);
        let next = next.min();
        self.tended = next.is_some();
        next
    }
}

/// Closes connections that nobody uses, for as long as there are any.
async fn tend(pool: Weak<Pool>) {
    loop {
        let Some(pool) = pool.upgrade() else { return };
        let Some(next) = pool.lines().close_idle(&pool, Instant::now()) else {
            return;
        };
        drop(pool);
        sleep_until(next).await;
    }
}
