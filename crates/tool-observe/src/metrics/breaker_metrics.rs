use std::{
    any::Any,
    sync::{
        Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Mutex, MutexGuard};
use tool_core::BreakerState;

/// Metrics of a circuit breaker.
#[derive(Debug, Default)]
pub(super) struct BreakerMetrics {
    changes: [AtomicU64; 3],
    /// Index of the state in [`BREAKER_STATES`] plus one; 0 if the breaker never changed its state.
    state: AtomicU64,
    /// Owner of that state. A breaker that a reload creates anew begins closed, and the breaker of a removed tool or server
    /// no longer exists.
    owner: Mutex<Option<BreakerOwner>>,
}

/// State of the tool or upstream that the breaker belongs to.
pub(super) type BreakerOwner = Weak<dyn Any + Send + Sync>;

/// States of a breaker, in the order of their exported numbers.
const BREAKER_STATES: [BreakerState; 3] = [BreakerState::Closed, BreakerState::HalfOpen, BreakerState::Open];

impl BreakerMetrics {
    pub(super) fn enter(&self, state: BreakerState, owner: BreakerOwner) {
        if let Some(index) = BREAKER_STATES.iter().position(|known| *known == state) {
            self.changes[index].fetch_add(1, Ordering::Relaxed);
            self.state.store(index as u64 + 1, Ordering::Relaxed);
            *self.owner() = Some(owner);
        }
    }

    /// Sets the owner of the breaker that calls pass now. The state is closed again if the owner is another.
    pub(super) fn set_owner(&self, owner: impl FnOnce() -> BreakerOwner) {
        const CLOSED: u64 = 1;
        if self.state.load(Ordering::Relaxed) <= CLOSED {
            return;
        }
        let (mut known, owner) = (self.owner(), owner());
        if !known.as_ref().is_some_and(|known| known.ptr_eq(&owner)) {
            self.state.store(CLOSED, Ordering::Relaxed);
            *known = Some(owner);
        }
    }

    /// Returns the number of the state. Returns `None` if the state never changed, or if the tool or server was removed.
    pub(super) fn state(&self) -> Option<u64> {
        let has_owner = self
            .owner()
            .as_ref()
            .is_some_and(|owner| owner.strong_count() > 0);
        self.state
            .load(Ordering::Relaxed)
            .checked_sub(1)
            .filter(|_| has_owner)
    }

    /// Returns `true` if the state ever changed.
    pub(super) fn has_changed(&self) -> bool {
        self.state.load(Ordering::Relaxed) > 0
    }

    fn owner(&self) -> MutexGuard<'_, Option<BreakerOwner>> {
        self.owner.lock()
    }

    /// Returns each state with the number of changes to it.
    pub(super) fn changes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let words = BREAKER_STATES.iter().map(|state| state.as_str());
        words.zip(self.changes.iter().map(|count| count.load(Ordering::Relaxed)))
    }
}
