//! Work that runs beside calls.

use std::sync::OnceLock;

use parking_lot::Mutex;
use tokio::runtime::{EnterGuard, Handle};
use tool_core::BoxFuture;
use tool_registry::Registry;

/// Work that runs beside calls, in the runtime of the first use. A toolplane can be built outside of a runtime: until
/// then the work waits.
#[derive(Default)]
pub(crate) struct Background {
    runtime: OnceLock<Handle>,
    waiting: Mutex<Vec<BoxFuture<'static, ()>>>,
}

impl Background {
    /// Starts the work that waits, and follows the sources of tools, unless that was done or this is outside of a runtime.
    #[inline]
    pub(crate) fn start(&self, registry: &Registry) {
        if self.runtime.get().is_none() {
            self.start_first(registry);
        }
    }

    #[cold]
    fn start_first(&self, registry: &Registry) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let mut waiting = self.waiting.lock();
        if self.runtime.set(runtime.clone()).is_err() {
            return;
        }
        for work in waiting.drain(..) {
            runtime.spawn(work);
        }
        drop(waiting);
        registry.follow();
    }

    /// Runs this work, as soon as there is a runtime.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut waiting = self.waiting.lock();
        match self.runtime.get() {
            Some(runtime) => drop(runtime.spawn(work)),
            None => waiting.push(Box::pin(work)),
        }
    }

    /// Enters the runtime of the work, if it is known and this is outside of one.
    pub(crate) fn enter(&self) -> Option<EnterGuard<'_>> {
        match Handle::try_current() {
            Ok(_) => None,
            Err(_) => self.runtime.get().map(Handle::enter),
        }
    }
}
