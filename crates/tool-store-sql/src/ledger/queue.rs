//! Queue of writes, and the task that writes them: all that wait at once in one transaction, so that calls which run at once share
//! the cost of a commit.

use std::{
    collections::VecDeque,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{Notify, watch},
    time::sleep,
};
use tool_core::{ErrorKind, ToolError};

use super::{
    read,
    writes::{Write, purge},
};
use crate::{Database, SqlError, SqlStore, codec};

/// Maximum number of waiting writes at which calls are still taken. Ends of calls that were taken are queued in any case.
const MAX_WAITING: usize = 10_000;
/// Maximum size of the replies that wait, in bytes. Further replies are not stored.
const MAX_BYTES: usize = 64 << 20;
/// Maximum number of writes in one transaction.
const MAX_BATCH: usize = 256;
/// First and longest pause after a failure.
const PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Time between two removals of expired entries, in milliseconds.
const PURGE_INTERVAL: i64 = 60_000;

/// Queue of the writes of one ledger.
pub(super) struct Queue<D> {
    store: Arc<SqlStore<D>>,
    max_reply: usize,
    state: Mutex<State>,
    /// Wakes a writer that pauses after a failure.
    urgent: Notify,
    progress: watch::Sender<Progress>,
    /// Runtime of the first use, for ends of calls that are dropped outside of it.
    runtime: OnceLock<Handle>,
    purged_at: AtomicI64,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Write>,
    n_bytes: usize,
    /// Number of writes that were ever queued.
    n_queued: u64,
    /// `true` while a task writes.
    is_writing: bool,
}

/// Progress of the writer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Progress {
    /// Number of writes that were made, or given up since nobody waits for them.
    n_done: u64,
    n_failures: u64,
}

impl<D: Database> Queue<D> {
    pub(super) fn new(store: Arc<SqlStore<D>>, max_reply: usize) -> Self {
        Self {
            store,
            max_reply,
            state: Mutex::default(),
            urgent: Notify::new(),
            progress: watch::Sender::default(),
            runtime: OnceLock::new(),
            purged_at: AtomicI64::new(i64::MIN),
        }
    }

    pub(super) fn store(&self) -> &SqlStore<D> {
        &self.store
    }

    /// Watches the progress of the writer.
    pub(super) fn watch(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Refuses a call while the writes of earlier ones do not keep up, or fail.
    pub(super) fn check_room(&self) -> Result<(), ToolError> {
        if self.state.lock().waiting.len() < MAX_WAITING {
            return Ok(());
        }
        let message = "the ledger does not keep up with the calls; try again later";
        Err(ToolError::new(ErrorKind::Overloaded, message).ignored_by_health())
    }

    /// Queues a write, and returns at once.
    pub(super) fn push(self: &Arc<Self>, mut write: Write) {
        let is_urgent = matches!(write, Write::Intent { .. });
        {
            let mut state = self.state.lock();
            // Unknown outcomes without a key are not announced by a claim, so they are bounded here.
            if matches!(write, Write::Unknown { .. }) && state.waiting.len() >= 2 * MAX_WAITING {
                tracing::error!("an unknown outcome is not recorded: too many writes of the ledger wait");
                return;
            }
            if state.n_bytes + write.n_bytes() > MAX_BYTES {
                write.drop_reply();
            }
            state.n_bytes += write.n_bytes();
            state.n_queued += 1;
            state.waiting.push_back(write);
        }
        if is_urgent {
            self.urgent.notify_one();
        }
        self.start();
    }

    /// Starts the writer, if none runs and something waits.
    fn start(self: &Arc<Self>) {
        let runtime = match Handle::try_current() {
            // The remembered one may have ended.
            Ok(runtime) => {
                self.runtime.get_or_init(|| runtime.clone());
                runtime
            }
            Err(_) => match self.runtime.get() {
                Some(runtime) => runtime.clone(),
                None => return,
            },
        };
        {
            let mut state = self.state.lock();
            if state.is_writing || state.waiting.is_empty() {
                return;
            }
            state.is_writing = true;
        }
        let writer = Writer {
            queue: self.clone(),
            is_done: false,
        };
        runtime.spawn(writer.run());
    }

    /// Waits until everything that is queued now is written.
    pub(super) async fn flush(self: &Arc<Self>) -> Result<(), SqlError> {
        let mut progress = self.watch();
        let before = *progress.borrow_and_update();
        let target = self.state.lock().n_queued;
        loop {
            let now = *progress.borrow_and_update();
            if now.n_done >= target {
                return Ok(());
            }
            if now.n_failures > before.n_failures {
                return Err(SqlError::failed("the writes of the ledger fail"));
            }
            self.urgent.notify_one();
            self.start();
            // The sender is part of the queue.
            let _ = progress.changed().await;
        }
    }
}

/// The one task that writes. It ends when nothing waits.
struct Writer<D: Database> {
    queue: Arc<Queue<D>>,
    /// `true` once nothing waited. Another writer may run already then.
    is_done: bool,
}

impl<D: Database> Drop for Writer<D> {
    /// The task may end with its runtime. The next write starts another one.
    fn drop(&mut self) {
        if !self.is_done {
            self.queue.state.lock().is_writing = false;
            // Whoever waits starts it.
            self.queue.progress.send_modify(|_| {});
        }
    }
}

/// Writes that are taken from the queue. Those that are not written go back, also if the task ends with its runtime.
struct Batch<'a, D: Database> {
    queue: &'a Queue<D>,
    writes: VecDeque<Write>,
}

impl<D: Database> Drop for Batch<'_, D> {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        while let Some(write) = self.writes.pop_back() {
            state.n_bytes += write.n_bytes();
            state.waiting.push_front(write);
        }
    }
}

impl<D: Database> Writer<D> {
    async fn run(mut self) {
        let queue = self.queue.clone();
        let mut pause = PAUSE;
        while let Some(batch) = queue.take() {
            match queue.write(batch).await {
                Ok(()) => pause = PAUSE,
                Err(error) => {
                    let database = queue.store.database().name();
                    tracing::warn!(database, %error, "the ledger is not written; it is tried again");
                    queue.progress.send_modify(|progress| progress.n_failures += 1);
                    tokio::select! {
                        () = sleep(pause) => {}
                        () = queue.urgent.notified() => {}
                    }
                    pause = (pause * 2).min(MAX_PAUSE);
                }
            }
        }
        self.is_done = true;
    }
}

impl<D: Database> Queue<D> {
    /// Takes the next writes. `None` if nothing waits: the writer ends, and the next write starts another one.
    fn take(&self) -> Option<Batch<'_, D>> {
        let mut state = self.state.lock();
        if state.waiting.is_empty() {
            // Within the lock, so that no write is queued in between without a writer.
            state.is_writing = false;
            return None;
        }
        let n_taken = state.waiting.len().min(MAX_BATCH);
        let writes: VecDeque<Write> = state.waiting.drain(..n_taken).collect();
        state.n_bytes -= writes.iter().map(Write::n_bytes).sum::<usize>();
        drop(state);
        Some(Batch { queue: self, writes })
    }

    /// Writes a batch. If that fails, the intents of the batch fail, and the rest is queued again.
    async fn write(&self, mut batch: Batch<'_, D>) -> Result<(), SqlError> {
        let n_taken = batch.writes.len();
        batch.writes.retain(|write| !write.is_withdrawn());
        let written = self.write_all(&batch.writes).await;
        if let Err(error) = &written {
            let (intents, rest): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut batch.writes)
                .into_iter()
                .partition(|write| matches!(write, Write::Intent { .. }));
            batch.writes = rest;
            for intent in intents {
                if let Write::Intent { done, .. } = intent {
                    let _ = done.send(Err(error.clone()));
                }
            }
        } else {
            for write in std::mem::take(&mut batch.writes) {
                if let Write::Intent { done, .. } = write {
                    let _ = done.send(Ok(()));
                }
            }
        }
        let n_done = n_taken - batch.writes.len();
        // The rest goes back before anybody learns of the progress.
        drop(batch);
        self.progress
            .send_modify(|progress| progress.n_done += n_done as u64);
        written
    }

    async fn write_all(&self, writes: &VecDeque<Write>) -> Result<(), SqlError> {
        if writes.is_empty() {
            return Ok(());
        }
        let (lease, clock) = (self.store.lease(), self.store.clock());
        let now = codec::millis(clock.wall());
        let mut transaction = self.store.database().write().await?;
        let renewal = lease.ensure(&mut *transaction, now).await?;
        for write in writes {
            write
                .write(&mut *transaction, lease.gateway(), self.max_reply)
                .await?;
        }
        let purges = now.saturating_sub(self.purged_at.load(Ordering::Relaxed)) >= PURGE_INTERVAL;
        if purges {
            read::report_abandoned_approvals(&mut *transaction, now).await?;
            purge(&mut *transaction, now).await?;
        }
        transaction.commit().await?;
        if purges {
            self.purged_at.store(now, Ordering::Relaxed);
        }
        lease.confirm(&renewal, self.store.shared_database(), clock);
        Ok(())
    }

    /// Ends the lease of this gateway.
    pub(super) async fn end_lease(&self) -> Result<(), SqlError> {
        if !self.store.lease().is_held() {
            return Ok(());
        }
        let mut transaction = self.store.database().write().await?;
        self.store.lease().end(&mut *transaction).await?;
        transaction.commit().await
    }
}
