//! Single flight: one execution for all calls that ask for the same result at a time (after Go's package `singleflight`).

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, OnceLock},
};

use raw_json::RawJson;
use tokio::sync::watch;
use tool_core::{DispatchHistory, Progress, Reply, ToolError};

use super::response_cache::{CacheKey, CachedReply};
use crate::sync::{AbortHandle, Mutex, MutexGuard, spawn};

/// Executions in flight, at most one per key, which other calls may join.
///
/// # Cancellation
/// An execution is aborted when its last waiter leaves, unless it was started without a waiter.
#[derive(Default)]
pub(crate) struct SingleFlight(Mutex<State>);

#[derive(Default)]
struct State {
    next_id: u64,
    in_flight: HashMap<CacheKey, InFlight>,
}

/// An execution in flight.
struct InFlight {
    id: u64,
    n_waiters: usize,
    /// `true` if it was started without a waiter, to refresh a stale reply. It then runs to its end.
    is_detached: bool,
    listeners: Arc<ProgressListeners>,
    history: Arc<DispatchHistory>,
    result: watch::Receiver<Option<FlightResult>>,
    /// Set as soon as the task is spawned. Its leader waits for it, so nobody aborts it before.
    abort: Arc<OnceLock<AbortHandle>>,
}

/// Result of an execution, for all of its waiters.
#[derive(Clone)]
pub(crate) enum FlightResult {
    /// One result, which all waiters get.
    Shared(Result<Reply, ToolError>),
    /// A result that only one of them may have. The others must make the call themselves.
    NotShareable,
}

/// Role of a call that joins a single flight.
pub(crate) enum Join {
    /// A reply that was cached in the meantime.
    Cached(Arc<CachedReply>),
    /// An execution to wait for, with the dispatch history of its attempts.
    Follower(
        FlightWaiter,
        watch::Receiver<Option<FlightResult>>,
        Arc<DispatchHistory>,
    ),
    /// A new execution, which this call leads.
    Leader(FlightWaiter, Leader),
}

/// Right and duty to start an execution.
pub(crate) struct Leader {
    pub(crate) completion: Completion,
    pub(crate) listeners: Arc<ProgressListeners>,
    /// Dispatch history of its attempts, which all waiters see.
    pub(crate) history: Arc<DispatchHistory>,
    abort: Arc<OnceLock<AbortHandle>>,
}

/// A call that waits for an execution. Dropping it leaves.
pub(crate) struct FlightWaiter {
    flights: Arc<SingleFlight>,
    key: CacheKey,
    flight: u64,
    id: u64,
}

/// Completion of an execution. Dropping it without [`Completion::complete`] ends the execution without a result.
pub(crate) struct Completion {
    flights: Arc<SingleFlight>,
    key: CacheKey,
    flight: u64,
    result: watch::Sender<Option<FlightResult>>,
}

/// Forwards the progress of an execution to all waiters that want it.
#[derive(Default)]
pub(crate) struct ProgressListeners(Mutex<Vec<(u64, Arc<dyn Progress>)>>);

impl SingleFlight {
    /// Joins the execution of this key. If there is none, takes the reply that one has just cached, or starts a new one.
    pub(crate) fn join(
        self: &Arc<Self>,
        key: &CacheKey,
        progress: Option<&Arc<dyn Progress>>,
        cached: impl FnOnce() -> Option<Arc<CachedReply>>,
    ) -> Join {
        let mut state = self.lock();
        let id = state.next_id();
        let waiter = |flight| FlightWaiter {
            flights: self.clone(),
            key: key.clone(),
            flight,
            id,
        };
        if let Some(in_flight) = state.in_flight.get_mut(key) {
            in_flight.n_waiters += 1;
            in_flight.listeners.add(id, progress);
            return Join::Follower(
                waiter(in_flight.id),
                in_flight.result.clone(),
                in_flight.history.clone(),
            );
        }
        // A reply is cached before its execution is removed: a result in neither place has to be fetched.
        if let Some(cached) = cached() {
            return Join::Cached(cached);
        }
        let leader = state.start(self, key, 1);
        leader.listeners.add(id, progress);
        Join::Leader(waiter(leader.completion.flight), leader)
    }

    /// Starts an execution without a waiter, unless there is one of this key already.
    pub(crate) fn lead_detached(self: &Arc<Self>, key: &CacheKey) -> Option<Leader> {
        let mut state = self.lock();
        (!state.in_flight.contains_key(key)).then(|| state.start(self, key, 0))
    }

    /// Returns the number of executions in flight.
    pub(crate) fn n_in_flight(&self) -> usize {
        self.lock().in_flight.len()
    }

    fn leave(&self, waiter: &FlightWaiter) {
        let mut state = self.lock();
        let Some(in_flight) = state
            .in_flight
            .get_mut(&waiter.key)
            .filter(|in_flight| in_flight.id == waiter.flight)
        else {
            return;
        };
        in_flight.listeners.remove(waiter.id);
        in_flight.n_waiters -= 1;
        if in_flight.n_waiters > 0 || in_flight.is_detached {
            return;
        }
        let abandoned = state.in_flight.remove(&waiter.key);
        drop(state);
        if let Some(abort) = abandoned.and_then(|in_flight| in_flight.abort.get().cloned()) {
            abort.abort();
        }
    }

    fn remove(&self, key: &CacheKey, flight: u64) {
        let mut state = self.lock();
        if state
            .in_flight
            .get(key)
            .is_some_and(|in_flight| in_flight.id == flight)
        {
            state.in_flight.remove(key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl State {
    fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn start(&mut self, flights: &Arc<SingleFlight>, key: &CacheKey, n_waiters: usize) -> Leader {
        let (sender, result) = watch::channel(None);
        let (listeners, abort) = (Arc::<ProgressListeners>::default(), Arc::default());
        let history = Arc::<DispatchHistory>::default();
        let in_flight = InFlight {
            id: self.next_id(),
            n_waiters,
            is_detached: n_waiters == 0,
            listeners: Arc::clone(&listeners),
            history: Arc::clone(&history),
            result,
            abort: Arc::clone(&abort),
        };
        let completion = Completion {
            flights: flights.clone(),
            key: key.clone(),
            flight: in_flight.id,
            result: sender,
        };
        self.in_flight.insert(key.clone(), in_flight);
        Leader {
            completion,
            listeners,
            history,
            abort,
        }
    }
}

impl Leader {
    /// Spawns the execution. `work` ends it with the [`Completion`], or drops that.
    pub(crate) fn spawn<F>(self, work: impl FnOnce(Completion, Arc<ProgressListeners>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let task = spawn(work(self.completion, self.listeners));
        let _ = self.abort.set(task.abort_handle());
    }
}

impl Completion {
    /// Ends the execution with its result.
    pub(crate) fn complete(self, result: FlightResult) {
        // Removed first: a later call does not join a finished execution.
        self.flights.remove(&self.key, self.flight);
        let _ = self.result.send(Some(result));
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        self.flights.remove(&self.key, self.flight);
    }
}

impl Drop for FlightWaiter {
    fn drop(&mut self) {
        self.flights.leave(self);
    }
}

impl ProgressListeners {
    fn add(&self, id: u64, progress: Option<&Arc<dyn Progress>>) {
        if let Some(progress) = progress {
            self.lock().push((id, progress.clone()));
        }
    }

    fn remove(&self, id: u64) {
        self.lock().retain(|(other, _)| *other != id);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Arc<dyn Progress>)>> {
        self.0.lock()
    }
}

impl Progress for ProgressListeners {
    fn report(&self, report: RawJson) {
        let listeners = self.lock().clone();
        for (_, listener) in listeners {
            listener.report(report.clone());
        }
    }
}

impl fmt::Debug for SingleFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in flight", self.n_in_flight())
    }
}
