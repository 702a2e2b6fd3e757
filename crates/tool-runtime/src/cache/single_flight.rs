use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, OnceLock},
};

use raw_json::RawJson;
use tokio::sync::watch;
use tool_core::{DispatchHistory, Progress, Reply, ToolError};

use super::response_cache::{Answer, Key};
use crate::sync::{AbortHandle, Mutex, MutexGuard, spawn};

/// The calls that others may join: at most one of each key.
///
/// # Cancellation
/// A flight is called off when the last call that waits for it has gone, unless it is kept up for its own sake.
#[derive(Default)]
pub(crate) struct Flights(Mutex<State>);

#[derive(Default)]
struct State {
    next_id: u64,
    aloft: HashMap<Key, Aloft>,
}

/// A flight as the others see it.
struct Aloft {
    id: u64,
    n_waiting: usize,
    is_kept_up: bool,
    listeners: Arc<Listeners>,
    history: Arc<DispatchHistory>,
    landed: watch::Receiver<Option<Landed>>,
    /// Set as soon as the flight has begun: whoever begins it waits for it, so nobody calls it off before.
    abort: Arc<OnceLock<AbortHandle>>,
}

/// What a flight came to, for all who wait.
#[derive(Clone)]
pub(crate) enum Landed {
    /// This, for each of them.
    Result(Result<Reply, ToolError>),
    /// Something that is for one of them alone: the others must make the call themselves.
    Apart,
}

/// What someone finds who wants a call made.
pub(crate) enum Boarding {
    /// An answer that came in the meantime.
    Kept(Arc<Answer>),
    /// A flight to join, with the marks of its attempts.
    Joined(Seat, watch::Receiver<Option<Landed>>, Arc<DispatchHistory>),
    /// A flight to begin.
    New(Seat, Takeoff),
}

/// A flight that is to begin.
pub(crate) struct Takeoff {
    pub(crate) landing: Landing,
    pub(crate) listeners: Arc<Listeners>,
    /// The marks of its attempts, which all who wait for it see.
    pub(crate) history: Arc<DispatchHistory>,
    abort: Arc<OnceLock<AbortHandle>>,
}

/// A place among those who wait for a flight; dropping it leaves them.
pub(crate) struct Seat {
    flights: Arc<Flights>,
    key: Key,
    flight: u64,
    id: u64,
}

/// The end of a flight; dropping it without [`Landing::land`] ends it without a result.
pub(crate) struct Landing {
    flights: Arc<Flights>,
    key: Key,
    flight: u64,
    landed: watch::Sender<Option<Landed>>,
}

/// Where the progress of a flight goes: to all who wait for it and want to know.
#[derive(Default)]
pub(crate) struct Listeners(Mutex<Vec<(u64, Arc<dyn Progress>)>>);

impl Flights {
    /// Joins the flight of this key, or takes the answer that a flight has left just before, or begins one.
    pub(crate) fn board(
        self: &Arc<Self>,
        key: &Key,
        progress: Option<&Arc<dyn Progress>>,
        kept: impl FnOnce() -> Option<Arc<Answer>>,
    ) -> Boarding {
        let mut state = self.lock();
        let id = state.next_id();
        let seat = |flight| Seat {
            flights: self.clone(),
            key: key.clone(),
            flight,
            id,
        };
        if let Some(aloft) = state.aloft.get_mut(key) {
            aloft.n_waiting += 1;
            aloft.listeners.add(id, progress);
            return Boarding::Joined(seat(aloft.id), aloft.landed.clone(), aloft.history.clone());
        }
        // Answers are kept before their flights are gone: what is in neither place has to be fetched.
        if let Some(answer) = kept() {
            return Boarding::Kept(answer);
        }
        let takeoff = state.begin(self, key, 1);
        takeoff.listeners.add(id, progress);
        Boarding::New(seat(takeoff.landing.flight), takeoff)
    }

    /// Begins a flight that nobody waits for, unless there is one already.
    pub(crate) fn keep_up(self: &Arc<Self>, key: &Key) -> Option<Takeoff> {
        let mut state = self.lock();
        (!state.aloft.contains_key(key)).then(|| state.begin(self, key, 0))
    }

    /// How many there are.
    pub(crate) fn n_aloft(&self) -> usize {
        self.lock().aloft.len()
    }

    fn leave(&self, seat: &Seat) {
        let mut state = self.lock();
        let Some(aloft) = state
            .aloft
            .get_mut(&seat.key)
            .filter(|aloft| aloft.id == seat.flight)
        else {
            return;
        };
        aloft.listeners.remove(seat.id);
        aloft.n_waiting -= 1;
        if aloft.n_waiting > 0 || aloft.is_kept_up {
            return;
        }
        let gone = state.aloft.remove(&seat.key);
        drop(state);
        if let Some(abort) = gone.and_then(|aloft| aloft.abort.get().cloned()) {
            abort.abort();
        }
    }

    fn remove(&self, key: &Key, flight: u64) {
        let mut state = self.lock();
        if state.aloft.get(key).is_some_and(|aloft| aloft.id == flight) {
            state.aloft.remove(key);
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

    fn begin(&mut self, flights: &Arc<Flights>, key: &Key, n_waiting: usize) -> Takeoff {
        let (sender, landed) = watch::channel(None);
        let (listeners, abort) = (Arc::<Listeners>::default(), Arc::default());
        let history = Arc::<DispatchHistory>::default();
        let aloft = Aloft {
            id: self.next_id(),
            n_waiting,
            is_kept_up: n_waiting == 0,
            listeners: Arc::clone(&listeners),
            history: Arc::clone(&history),
            landed,
            abort: Arc::clone(&abort),
        };
        let landing = Landing {
            flights: flights.clone(),
            key: key.clone(),
            flight: aloft.id,
            landed: sender,
        };
        self.aloft.insert(key.clone(), aloft);
        Takeoff {
            landing,
            listeners,
            history,
            abort,
        }
    }
}

impl Takeoff {
    /// Begins it. The work lands it with the [`Landing`], or drops that.
    pub(crate) fn begin<F>(self, work: impl FnOnce(Landing, Arc<Listeners>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let task = spawn(work(self.landing, self.listeners));
        let _ = self.abort.set(task.abort_handle());
    }
}

impl Landing {
    /// Ends the flight with what it came to.
    pub(crate) fn land(self, landed: Landed) {
        // Whoever comes from now on does not wait for what is over.
        self.flights.remove(&self.key, self.flight);
        let _ = self.landed.send(Some(landed));
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.flights.remove(&self.key, self.flight);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.flights.leave(self);
    }
}

impl Listeners {
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

impl Progress for Listeners {
    fn report(&self, report: RawJson) {
        let listeners = self.lock().clone();
        for (_, listener) in listeners {
            listener.report(report.clone());
        }
    }
}

impl fmt::Debug for Flights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} flights", self.n_aloft())
    }
}
