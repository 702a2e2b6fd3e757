use std::{fmt, future::ready, sync::Arc};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tool_core::BoxFuture;

use super::{Pin, PinSet, Pins, PinsError};

/// [`Pins`] in memory: the accepted definitions of one run.
#[derive(Default)]
pub struct MemoryPins {
    set: ArcSwap<PinSet>,
    /// Held while the set is replaced.
    changing: Mutex<()>,
}

impl MemoryPins {
    /// Makes a storage that begins with these pins.
    #[must_use]
    pub fn new(pins: PinSet) -> Self {
        Self {
            set: ArcSwap::from_pointee(pins),
            changing: Mutex::new(()),
        }
    }

    /// Replaces the pins as `change` says.
    pub(super) fn change(&self, change: impl FnOnce(&mut PinSet)) {
        let _guard = self.changing.lock();
        let mut set = PinSet::clone(&self.set.load());
        change(&mut set);
        self.set.store(Arc::new(set));
    }
}

/// Adds pins whose keys have none yet.
pub(super) fn add_missing(set: &mut PinSet, pins: Vec<Pin>) {
    for pin in pins {
        let key = pin.key();
        if set.get(&key.source, key.feature, &key.name).is_none() {
            set.insert(Arc::new(pin));
        }
    }
}

impl Pins for MemoryPins {
    fn snapshot(&self) -> Arc<PinSet> {
        self.set.load_full()
    }

    fn add_first_used(&self, pins: Vec<Pin>) {
        self.change(|set| add_missing(set, pins));
    }

    fn accept(&self, pins: Vec<Pin>) -> BoxFuture<'_, Result<(), PinsError>> {
        self.change(|set| {
            for pin in pins {
                set.insert(Arc::new(pin));
            }
        });
        Box::pin(ready(Ok(())))
    }

    fn refresh(&self) -> BoxFuture<'_, Result<bool, PinsError>> {
        Box::pin(ready(Ok(false)))
    }
}

impl fmt::Debug for MemoryPins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryPins")
            .field("n_pins", &self.set.load().len())
            .finish_non_exhaustive()
    }
}
