use std::{
    collections::HashMap,
    mem, ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use raw_json::RawJson;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tool_core::{Asker, ClientKey};

use crate::{calls::Seat, line::Line};

/// The connections that are kept for single clients.
#[derive(Default)]
pub(crate) struct Pool(Mutex<Lines>);

#[derive(Default)]
struct Lines {
    by_client: HashMap<Client, Vec<Arc<Line>>>,
    n: usize,
    /// Whether a task looks after those that nobody uses.
    tended: bool,
    /// Those that are being closed.
    closing: JoinSet<()>,
}

/// Whom a connection is kept for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    pub(crate) key: ClientKey,
    /// Whose session it is: nobody else gets at it, whatever its session is called.
    pub(crate) principal: Arc<str>,
    pub(crate) tenant: Arc<str>,
    /// What was declared that it can be asked, which is said when the connection is opened.
    pub(crate) capabilities: RawJson,
    /// Whether a connection serves one call at a time.
    pub(crate) alone: bool,
}

/// How long a connection that nobody uses is kept.
const IDLE: Duration = Duration::from_secs(300);

impl Pool {
    /// A place for a call on a connection of its client, made by `open` if there is none to use; nothing if there are
    /// `most` already and all are in use.
    pub(crate) fn seat(
        self: &Arc<Self>,
        client: &Client,
        asker: Option<&Asker>,
        most: usize,
        open: impl FnOnce() -> Arc<Line>,
    ) -> Option<(Arc<Line>, Seat)> {
        let mut lines = self.lines();
        let known = lines.by_client.get(client).into_iter().flatten();
        let mut usable = known.filter(|line| !client.alone || line.calls.idle_since().is_some());
        if let Some(line) = usable.next().cloned() {
            let seat = line.calls.begin(asker.cloned());
            return Some((line, seat));
        }
        if lines.n >= most && !lines.close_longest_idle() {
            return None;
        }
        let line = open();
        // Before anyone else can see that it is idle.
        let seat = line.calls.begin(asker.cloned());
        lines
            .by_client
            .entry(client.clone())
            .or_default()
            .push(line.clone());
        lines.n += 1;
        if !lines.tended {
            lines.tended = true;
            tokio::spawn(tend(Arc::downgrade(self)));
        }
        Some((line, seat))
    }

    /// The connections of a client.
    pub(crate) fn of(&self, key: &ClientKey) -> Vec<Arc<Line>> {
        let lines = self.lines();
        let of_client = lines.by_client.iter().filter(|(client, _)| client.key == *key);
        of_client.flat_map(|(_, lines)| lines.clone()).collect()
    }

    /// Closes the connections of a client that are not in use.
    pub(crate) fn close(&self, key: &ClientKey) {
        self.lines()
            .close_where(|client, line| client.key == *key && line.calls.idle_since().is_some());
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<Line>> {
        self.lines().by_client.values().flatten().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.lines().n
    }

    /// How many of them are in use.
    pub(crate) fn n_used(&self) -> usize {
        let lines = self.lines();
        let all = lines.by_client.values().flatten();
        all.filter(|line| line.calls.idle_since().is_none()).count()
    }

    /// Closes all of them and waits until they are.
    pub(crate) async fn shutdown(&self) {
        let closing = {
            let mut lines = self.lines();
            lines.close_where(|_, _| true);
            mem::take(&mut lines.closing)
        };
        closing.join_all().await;
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    fn close_where(&mut self, is_over: impl Fn(&Client, &Line) -> bool) {
        let mut over = Vec::new();
        self.by_client.retain(|client, lines| {
            over.extend(lines.extract_if(.., |line| is_over(client, line)));
            !lines.is_empty()
        });
        self.n -= over.len();
        while self.closing.try_join_next().is_some() {}
        for line in over {
            self.closing.spawn(async move { line.upstream.shutdown().await });
        }
    }

    fn close_longest_idle(&mut self) -> bool {
        let idle = self
            .by_client
            .values()
            .flatten()
            .filter_map(|line| Some((line.calls.idle_since()?, line)));
        let Some((_, longest)) = idle.min_by_key(|(since, _)| *since) else {
            return false;
        };
        let longest = longest.clone();
        self.close_where(|_, line| ptr::eq(line, &*longest));
        true
    }

    /// Closes those that nobody has used for long, and says when to look again.
    fn close_idle(&mut self, now: Instant) -> Option<Instant> {
        self.close_where(|_, line| line.calls.idle_since().is_some_and(|since| since + IDLE <= now));
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
        let Some(next) = pool.lines().close_idle(Instant::now()) else {
            return;
        };
        drop(pool);
        sleep_until(next).await;
    }
}
