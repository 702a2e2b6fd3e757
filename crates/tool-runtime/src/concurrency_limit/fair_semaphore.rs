//! Fair semaphore: permits for running attempts, in order of arrival, with a bounded queue. It differs from tokio's `Semaphore`
//! in that each call brings the limit, and in that it estimates waiting times.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::{sync::oneshot, time::Instant};
use tool_core::ConcurrencySettings;

use crate::sync::Mutex;

/// Semaphore with a bounded queue. Waiters receive permits in order of arrival; a call that finds the queue full is refused.
///
/// Each call brings the limit. A reload that changes the limit thus keeps the semaphore, and with it the count of running
/// attempts.
#[derive(Default)]
pub(crate) struct FairSemaphore(Mutex<State>);

#[derive(Default)]
struct State {
    max: u32,
    n_running: u32,
    next_ticket: u64,
    /// Waiters by ticket. The smallest ticket is next.
    waiters: BTreeMap<u64, oneshot::Sender<SemaphorePermit>>,
    /// Moving average of the time for which a permit is held. `None` before the first release.
    mean_hold: Option<Duration>,
}

/// Result of [`FairSemaphore::acquire`].
pub(crate) enum Acquire {
    /// A permit.
    Permit(SemaphorePermit),
    /// A place in the queue.
    Queued(Waiter),
    /// The queue is full. Holds the time after which to retry.
    Full(Duration),
}

/// Permit for one attempt. Dropping it passes it to the next waiter.
pub(crate) struct SemaphorePermit {
    semaphore: Arc<FairSemaphore>,
    /// Time at which the owner received it. `None` before that.
    since: Option<Instant>,
}

/// Place in the queue. Dropping it leaves the queue.
pub(crate) struct Waiter {
    semaphore: Arc<FairSemaphore>,
    ticket: u64,
    expected_wait: Option<Duration>,
    permit: oneshot::Receiver<SemaphorePermit>,
}

/// Retry hint while no permit was released yet.
const DEFAULT_HINT: Duration = Duration::from_secs(1);
/// Shortest estimated retry hint.
const MIN_HINT: Duration = Duration::from_millis(100);
/// Longest estimated retry hint.
const MAX_HINT: Duration = Duration::from_secs(60);

impl FairSemaphore {
    /// Takes a permit, or a place in the queue.
    pub(crate) fn acquire(self: &Arc<Self>, limit: &ConcurrencySettings) -> Acquire {
        let mut state = self.0.lock();
        state.max = limit.max;
        // There are free permits for waiters if the limit was raised.
        let next = state.next_waiters();
        let acquired = if state.n_running < limit.max {
            state.n_running += 1;
            Acquire::Permit(SemaphorePermit {
                semaphore: self.clone(),
                since: Some(Instant::now()),
            })
        } else if state.waiters.len() >= usize::try_from(limit.queue).unwrap_or(usize::MAX) {
            Acquire::Full(state.retry_hint())
        } else {
            let (sender, permit) = oneshot::channel();
            let ticket = state.next_ticket;
            let expected_wait = state.expected_wait();
            state.next_ticket += 1;
            state.waiters.insert(ticket, sender);
            Acquire::Queued(Waiter {
                semaphore: self.clone(),
                ticket,
                expected_wait,
                permit,
            })
        };
        drop(state);
        self.grant(next);
        acquired
    }

    /// Returns the time after which a refused call may retry.
    pub(crate) fn retry_hint(&self) -> Duration {
        self.0.lock().retry_hint()
    }

    fn release(self: &Arc<Self>, held: Option<Duration>) {
        let mut state = self.0.lock();
        state.n_running -= 1;
        if let Some(held) = held {
            state.mean_hold = Some(state.mean_hold.map_or(held, |mean| (mean * 7 + held) / 8));
        }
        let next = state.next_waiters();
        drop(state);
        self.grant(next);
    }

    /// Sends permits to these waiters. A waiter that left in the meantime drops its permit, which passes to the next one.
    fn grant(self: &Arc<Self>, next: Vec<oneshot::Sender<SemaphorePermit>>) {
        for sender in next {
            let _ = sender.send(SemaphorePermit {
                semaphore: self.clone(),
                since: None,
            });
        }
    }
}

impl State {
    /// Removes the waiters for which there are permits, and counts these as taken.
    fn next_waiters(&mut self) -> Vec<oneshot::Sender<SemaphorePermit>> {
        let mut next = Vec::new();
        while self.n_running < self.max
            && let Some((_, sender)) = self.waiters.pop_first()
        {
            self.n_running += 1;
            next.push(sender);
        }
        next
    }

    /// Returns the approximate time until all waiters and one more call have had a permit, or `None` if no permit was ever
    /// released.
    fn drain_time(&self) -> Option<Duration> {
        let n_turns = u32::try_from(self.waiters.len() + 1).unwrap_or(u32::MAX);
        self.mean_hold
            .map(|hold| hold.saturating_mul(n_turns) / self.max.max(1))
    }

    /// Returns the approximate maximum wait of a new waiter: a quarter more than the average, since permits are not held equally
    /// long. Returns `None` for the first waiter, since a running call may end at any time.
    fn expected_wait(&self) -> Option<Duration> {
        let drain_time = self.drain_time().filter(|_| !self.waiters.is_empty())?;
        Some(drain_time.saturating_add(drain_time / 4))
    }

    fn retry_hint(&self) -> Duration {
        let hint = self.drain_time();
        let hint = hint.map_or(DEFAULT_HINT, |hint| hint.clamp(MIN_HINT, MAX_HINT));
        Duration::from_millis(u64::try_from(hint.as_millis()).unwrap_or(u64::MAX))
    }
}

impl Waiter {
    /// Returns the approximate maximum wait, or `None` if it is unknown.
    pub(crate) fn expected_wait(&self) -> Option<Duration> {
        self.expected_wait
    }

    /// Waits for the permit.
    ///
    /// # Cancellation
    /// Dropping the future leaves the queue. A permit that was sent at the same moment passes to the next waiter.
    pub(crate) async fn permit(&mut self) -> SemaphorePermit {
        match (&mut self.permit).await {
            Ok(mut permit) => {
                permit.since = Some(Instant::now());
                permit
            }
            // The sender is in the semaphore, which `self` keeps alive, until it sends.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let own = self.semaphore.0.lock().waiters.remove(&self.ticket);
        drop(own);
    }
}

impl Drop for SemaphorePermit {
    fn drop(&mut self) {
        self.semaphore.release(self.since.map(|since| since.elapsed()));
    }
}
