use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::{sync::oneshot, time::Instant};
use tool_core::ConcurrencySettings;

use crate::sync::Mutex;

/// Lets in so many calls at once; more wait in the order in which they came, and those that find the queue full are
/// told so.
///
/// How many is said by each call: a reload that changes the limit keeps the gate, and with it the count of what runs.
#[derive(Default)]
pub(crate) struct Gate(Mutex<State>);

#[derive(Default)]
struct State {
    max: u32,
    n_running: u32,
    next_ticket: u64,
    /// Those who wait, by their tickets: the smallest is next.
    waiting: BTreeMap<u64, oneshot::Sender<Place>>,
    /// How long a place was held lately; nothing before the first was given back.
    hold: Option<Duration>,
}

/// What a call finds at a gate.
pub(crate) enum Entry {
    /// A place.
    Place(Place),
    /// Others, who were there before.
    Queue(Waiting),
    /// A queue that is full, and when it may be shorter.
    Full(Duration),
}

/// A call's place, which dropping gives to the next.
pub(crate) struct Place {
    gate: Arc<Gate>,
    /// Nothing before its owner knows of it.
    since: Option<Instant>,
}

/// A place in the queue, which dropping frees.
pub(crate) struct Waiting {
    gate: Arc<Gate>,
    ticket: u64,
    expected: Option<Duration>,
    place: oneshot::Receiver<Place>,
}

/// What is said to whoever asks when to come again while nothing is known, and the bounds of what is said then.
const USUAL_HINT: Duration = Duration::from_secs(1);
const MIN_HINT: Duration = Duration::from_millis(100);
const MAX_HINT: Duration = Duration::from_secs(60);

impl Gate {
    /// Asks for a place.
    pub(crate) fn enter(self: &Arc<Self>, limit: &ConcurrencySettings) -> Entry {
        let mut state = self.0.lock();
        state.max = limit.max;
        // There are some if the limit was raised since.
        let next = state.next();
        let entry = if state.n_running < limit.max {
            state.n_running += 1;
            Entry::Place(Place {
                gate: self.clone(),
                since: Some(Instant::now()),
            })
        } else if state.waiting.len() >= usize::try_from(limit.queue).unwrap_or(usize::MAX) {
            Entry::Full(state.hint())
        } else {
            let (sender, place) = oneshot::channel();
            let ticket = state.next_ticket;
            let expected = state.expected();
            state.next_ticket += 1;
            state.waiting.insert(ticket, sender);
            Entry::Queue(Waiting {
                gate: self.clone(),
                ticket,
                expected,
                place,
            })
        };
        drop(state);
        self.hand_out(next);
        entry
    }

    /// When someone who has waited in vain may come again.
    pub(crate) fn hint(&self) -> Duration {
        self.0.lock().hint()
    }

    fn leave(self: &Arc<Self>, held: Option<Duration>) {
        let mut state = self.0.lock();
        state.n_running -= 1;
        if let Some(held) = held {
            state.hold = Some(state.hold.map_or(held, |hold| (hold * 7 + held) / 8));
        }
        let next = state.next();
        drop(state);
        self.hand_out(next);
    }

    /// Gives places to these. Whoever has gone in the meantime drops the place, and it goes to the next.
    fn hand_out(self: &Arc<Self>, next: Vec<oneshot::Sender<Place>>) {
        for sender in next {
            let _ = sender.send(Place {
                gate: self.clone(),
                since: None,
            });
        }
    }
}

impl State {
    /// Those for whom there is a place now, which is counted as theirs.
    fn next(&mut self) -> Vec<oneshot::Sender<Place>> {
        let mut next = Vec::new();
        while self.n_running < self.max
            && let Some((_, sender)) = self.waiting.pop_first()
        {
            self.n_running += 1;
            next.push(sender);
        }
        next
    }

    /// About how long it takes until all who wait, and one more, have had their turn; nothing if no place was ever given back.
    fn turns(&self) -> Option<Duration> {
        let n_turns = u32::try_from(self.waiting.len() + 1).unwrap_or(u32::MAX);
        self.hold
            .map(|hold| hold.saturating_mul(n_turns) / self.max.max(1))
    }

    /// About how long someone waits at most who comes now and is not the first to wait: a quarter longer than on average,
    /// since places are not held equally long. Of the first it is not said: the call before it may end at any time.
    fn expected(&self) -> Option<Duration> {
        let turns = self.turns().filter(|_| !self.waiting.is_empty())?;
        Some(turns.saturating_add(turns / 4))
    }

    /// What is said to whoever asks when to come again.
    fn hint(&self) -> Duration {
        let hint = self.turns();
        let hint = hint.map_or(USUAL_HINT, |hint| hint.clamp(MIN_HINT, MAX_HINT));
        Duration::from_millis(u64::try_from(hint.as_millis()).unwrap_or(u64::MAX))
    }
}

impl Waiting {
    /// About how long it will be, if that can be said.
    pub(crate) fn expected(&self) -> Option<Duration> {
        self.expected
    }

    /// Waits for the place.
    ///
    /// # Cancellation
    /// Dropping the future leaves the queue; a place that was given at the same moment goes to the next.
    pub(crate) async fn place(&mut self) -> Place {
        match (&mut self.place).await {
            Ok(mut place) => {
                place.since = Some(Instant::now());
                place
            }
            // The sender is in the gate, which `self` keeps, until it sends.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let ours = self.gate.0.lock().waiting.remove(&self.ticket);
        drop(ours);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.gate.leave(self.since.map(|since| since.elapsed()));
    }
}
