use std::{pin::pin, sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::Notify, time::Instant};

use super::backoff::{Backoff, MAX_PAUSE, STABLE_AFTER};
use crate::ClientError;

/// Budget of server starts. Every [`Upstream`](crate::Upstream) has its own, unless several connections to one server
/// share one: then a failure of one delays the next start of all of them.
///
/// # Rate
/// A pause follows every failure, and concurrent failures add up: a server that ends at once is started at most six
/// times in the first minute, however many callers need it. Connections that were open and end together, as in a
/// redeployment of the server, count as one failure. At most four starts run concurrently; after a failure only one,
/// until a server has been up for a minute.
#[derive(Debug, Clone)]
pub struct StartBudget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<BudgetState>,
    /// Signals that a start has finished.
    freed: Notify,
}

#[derive(Debug)]
struct BudgetState {
    backoff: Backoff,
    n_starting: usize,
    /// End of the pause and its cause.
    rest: Option<(Instant, ClientError)>,
    failed_at: Option<Instant>,
    /// Time of the first success since the last failure.
    up_since: Option<Instant>,
}

/// Maximum number of concurrent starts.
const MAX_CONCURRENT: usize = 4;

impl Default for StartBudget {
    fn default() -> Self {
        Self::new(None)
    }
}

impl StartBudget {
    /// Creates an unused budget. The jitter of pauses is derived from the seed, or random if it is `None`.
    #[must_use]
    pub fn new(jitter_seed: Option<u64>) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::new(BudgetState {
                backoff: Backoff::new(jitter_seed),
                n_starting: 0,
                rest: None,
                failed_at: None,
                up_since: None,
            }),
            freed: Notify::new(),
        }))
    }

    /// Error for callers during a pause.
    pub(super) fn refusal(&self) -> Option<ClientError> {
        self.state().refusal(Instant::now())
    }

    /// Waits for the permit to start.
    ///
    /// # Errors
    /// Returns an error if a start failed meanwhile.
    pub(super) async fn acquire(&self) -> Result<StartPermit, ClientError> {
        loop {
            let mut freed = pin!(self.0.freed.notified());
            freed.as_mut().enable();
            {
                let mut state = self.state();
                let now = Instant::now();
                if let Some(refusal) = state.refusal(now) {
                    return Err(refusal);
                }
                if state.n_starting < state.max_concurrent(now) {
                    state.n_starting += 1;
                    return Ok(StartPermit(Arc::clone(&self.0)));
                }
            }
            freed.await;
        }
    }

    /// Records a successful start.
    pub(super) fn record_success(&self) {
        self.state().up_since.get_or_insert_with(Instant::now);
    }

    /// Records a failure of a server started at `start`, during its start or, if `was_open`, later. Returns the
    /// earliest time of the next start.
    pub(super) fn record_failure(
        &self,
        error: &ClientError,
        start: Option<Instant>,
        now: Instant,
        was_open: bool,
    ) -> Instant {
        let mut state = self.state();
        let resting = state.rest.as_ref().map_or(now, |(until, _)| (*until).max(now));
        let is_same = was_open
            && state
                .failed_at
                .zip(start)
                .is_some_and(|(last, start)| start < last);
        if is_same {
            return resting;
        }
        let pause = state.backoff.record_failure(start, now);
        let longest = now + MAX_PAUSE + MAX_PAUSE / 4;
        let until = (resting + pause).min(longest);
        state.rest = Some((until, error.clone()));
        (state.failed_at, state.up_since) = (Some(now), None);
        until
    }

    /// Ends the pause, because the server is another one now.
    pub(super) fn clear_pause(&self) {
        self.state().rest = None;
    }

    fn state(&self) -> MutexGuard<'_, BudgetState> {
        self.0.state.lock()
    }
}

impl BudgetState {
    fn refusal(&self, now: Instant) -> Option<ClientError> {
        let (until, error) = self.rest.as_ref()?;
        let left = until.checked_duration_since(now)?;
        (left > Duration::ZERO).then(|| ClientError::unavailable(error.clone(), left))
    }

    fn max_concurrent(&mut self, now: Instant) -> usize {
        if self.up_since.is_some_and(|since| since + STABLE_AFTER <= now) {
            self.backoff.reset();
        }
        if self.backoff.has_failures() {
            1
        } else {
            MAX_CONCURRENT
        }
    }
}

/// Permit to start, released on drop.
pub(super) struct StartPermit(Arc<Shared>);

impl Drop for StartPermit {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.n_starting -= 1;
        drop(state);
        self.0.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of starts in the first minute, if `n_connections` need a server that ends after `lives`.
    async fn starts_in_a_minute(n_connections: usize, lives: Duration) -> usize {
        let budget = StartBudget::new(Some(1));
        let n_starts = Arc::new(Mutex::new(0));
        let wanting = (0..n_connections).map(|_| {
            let (budget, n_starts) = (budget.clone(), Arc::clone(&n_starts));
            tokio::spawn(async move {
                loop {
                    let Ok(permit) = budget.acquire().await else {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    };
                    *n_starts.lock() += 1;
                    let start = Instant::now();
                    tokio::time::sleep(lives).await;
                    let ended = ClientError::closed("the end");
                    budget.record_failure(&ended, Some(start), Instant::now(), false);
                    drop(permit);
                }
            })
        });
        let wanting: Vec<_> = wanting.collect();
        tokio::time::sleep(Duration::from_secs(60)).await;
        for task in wanting {
            task.abort();
        }
        *n_starts.lock()
    }

    #[tokio::test(start_paused = true)]
    async fn one_server_is_started_six_times_in_a_minute_however_many_want_it() {
        for n_connections in [1, 2, 5, 50] {
            for lives in [0, 100, 3000].map(Duration::from_millis) {
                let n_starts = starts_in_a_minute(n_connections, lives).await;
                assert!(
                    (3..=6).contains(&n_starts),
                    "{n_connections}, {lives:?}: {n_starts}"
                );
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_end_together_count_once() {
        let budget = StartBudget::new(Some(1));
        let (start, ended) = (Instant::now(), ClientError::closed("the end"));
        tokio::time::advance(Duration::from_secs(5)).await;
        let now = Instant::now();
        let pauses = [(); 9].map(|()| budget.record_failure(&ended, Some(start), now, true) - now);
        assert!(pauses.iter().all(|pause| *pause == pauses[0]), "{pauses:?}");
        assert!(pauses[0] < Duration::from_secs(2), "{pauses:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_at_a_time_is_started_until_one_has_been_up_for_a_minute() {
        let budget = StartBudget::new(Some(1));
        let max_concurrent = || budget.state().max_concurrent(Instant::now());
        assert_eq!(max_concurrent(), MAX_CONCURRENT);
        budget.record_failure(&ClientError::closed("the end"), None, Instant::now(), false);
        assert!(budget.refusal().is_some());
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(budget.refusal().is_none());
        budget.record_success();
        assert_eq!(max_concurrent(), 1);
        tokio::time::advance(STABLE_AFTER).await;
        assert_eq!(max_concurrent(), MAX_CONCURRENT);
    }
}
