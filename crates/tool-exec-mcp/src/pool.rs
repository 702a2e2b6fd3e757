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
use tool_core::{CallContext, ClientGroup, ClientIdentity, ClientKey};

use crate::{
    calls::{Seat, Standing},
    line::Line,
    own_subscriptions::OwnSubscriptions,
    queue::{Queue, Reason},
};

/// The connections that are kept for single clients.
pub(crate) struct Pool {
    /// The name of the server.
    pub(crate) server: String,
    lines: Mutex<Lines>,
    /// Tells when one has been closed.
    pub(crate) closed: Notify,
    /// Tells when one has been opened that is closed sooner than others.
    surplus: Arc<Notify>,
    /// The clients whose oldest connection is kept since it gives news.
    subscriptions: Arc<OwnSubscriptions>,
}

#[derive(Default)]
pub(crate) struct Lines {
    pub(crate) by_client: HashMap<Client, Vec<Arc<Line>>>,
    /// The calls that wait for connections of their clients.
    pub(crate) queues: HashMap<Client, Queue>,
    /// How many calls ever waited.
    pub(crate) n_calls: u64,
    /// How long the last opening took.
    pub(crate) last_start: Duration,
    pub(crate) is_stopped: bool,
    /// How many there are, with those that are being closed.
    pub(crate) n: usize,
    pub(crate) n_closing: usize,
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
/// The same for one beside the oldest of its client.
const IDLE_SURPLUS: Duration = Duration::from_secs(30);

impl Pool {
    pub(crate) fn new(server: &str, subscriptions: &Arc<OwnSubscriptions>) -> Arc<Self> {
        Arc::new(Self {
            server: server.to_owned(),
            lines: Mutex::default(),
            closed: Notify::new(),
            surplus: Arc::default(),
            subscriptions: subscriptions.clone(),
        })
    }

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
            None if lines.n < most => {
                let line = self.insert(&mut lines, client, open());
                self.log_opening(&lines, &Reason::First);
                line
            }
            None if lines.n_closing > 0 || lines.close_longest_idle(self) => return Seating::Closing,
            None => return Seating::Full,
        };
        // Before anyone else can see that it is idle.
        let seat = line.calls.begin(cx);
        Seating::Place(line, seat)
    }

    pub(crate) fn insert(self: &Arc<Self>, lines: &mut Lines, client: &Client, line: Arc<Line>) -> Arc<Line> {
        if client.alone {
            let (pool, client) = (Arc::downgrade(self), client.clone());
            line.calls.on_free(move || {
                if let Some(pool) = pool.upgrade() {
                    pool.freed(&client);
                }
            });
        }
        let of_client = lines.by_client.entry(client.clone()).or_default();
        of_client.push(line.clone());
        if of_client.len() > 1 {
            self.surplus.notify_one();
        }
        lines.n += 1;
        if !lines.tended {
            lines.tended = true;
            tokio::spawn(tend(Arc::downgrade(self), self.surplus.clone()));
        }
        line
    }

    pub(crate) fn log_opening(&self, lines: &Lines, reason: &Reason) {
        let (server, n_open) = (&self.server, lines.n - lines.n_closing);
        tracing::info!(
            server,
            n_open,
            "a connection for a single client is opened: {reason}"
        );
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
            lines.is_stopped = true;
            lines.close_where(self, |_, _| true);
            Self::wake_all(&lines);
            mem::take(&mut lines.closing)
        };
        closing.join_all().await;
    }

    pub(crate) fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock()
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
        let asker = cx.origin.ask.as_ref().map(|asker| asker.client().client());
        let standing = |line: &Line| line.calls.standing(asker.as_ref());
        let mut has_given_up = false;
        let mut known = known.iter();
        let found = known.find(|line| match standing(line) {
            Standing::Idle | Standing::InUse => true,
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

    pub(crate) fn close_where(&mut self, pool: &Arc<Pool>, is_over: impl Fn(&Client, &Line) -> bool) {
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

    /// Closes the connection that nobody has used for longest, one beside another of its client before all others, and one
    /// that gives news after all others. One that is being opened is in use.
    pub(crate) fn close_longest_idle(&mut self, pool: &Arc<Pool>) -> bool {
        let unwanted = self
            .by_client
            .iter()
            .filter(|(client, _)| !self.queues.contains_key(client));
        let lines = unwanted.flat_map(|(client, lines)| {
            let is_last = lines.len() == 1;
            let gives_news = is_last && pool.subscriptions.serves(client);
            lines.iter().map(move |line| ((is_last, gives_news), line))
        });
        let idle = lines.filter_map(|(order, line)| Some(((order, line.calls.idle_since()?), line)));
        let Some((_, longest)) = idle.min_by_key(|(order, _)| *order) else {
            return false;
        };
        let longest = longest.clone();
        self.close_where(pool, |_, line| ptr::eq(line, &*longest));
        true
    }

    /// Closes those that nobody has used for long, and says when to look again.
    fn close_idle(&mut self, pool: &Arc<Pool>, now: Instant) -> Option<Instant> {
        let limit = |own: &[Arc<Line>], line: &Line| match own.first() {
            Some(oldest) if !ptr::eq(&**oldest, line) => IDLE_SURPLUS,
            _ => IDLE,
        };
        let all = |lines: &Self| -> Vec<_> {
            let of_each = lines.by_client.iter().flat_map(|(client, own)| {
                let gives_news = pool.subscriptions.serves(client);
                own.iter().enumerate().map(move |(place, line)| {
                    let is_kept = place == 0 && gives_news;
                    let idle = line.calls.idle_since().filter(|_| !is_kept);
                    (Arc::clone(line), idle, limit(own, line))
                })
            });
            of_each.collect()
        };
        let over: Vec<_> = all(self)
            .into_iter()
            .filter(|(_, idle, limit)| idle.is_some_and(|since| since + *limit <= now))
            .collect();
        self.close_where(pool, |_, line| {
            over.iter().any(|(closed, ..)| ptr::eq(&**closed, line))
        });
        let left = all(self).into_iter();
        let next = left.map(|(_, idle, limit)| idle.unwrap_or(now) + limit).min();
        self.tended = next.is_some();
        next
    }
}

/// Closes connections that nobody uses, for as long as there are any.
async fn tend(pool: Weak<Pool>, surplus: Arc<Notify>) {
    loop {
        let Some(pool) = pool.upgrade() else { return };
        let Some(next) = pool.lines().close_idle(&pool, Instant::now()) else {
            return;
        };
        drop(pool);
        tokio::select! {
            () = sleep_until(next) => {}
            () = surplus.notified() => {}
        }
    }
}
