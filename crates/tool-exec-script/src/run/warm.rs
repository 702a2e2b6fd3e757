use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::sleep;
use tool_core::CallContext;
use tool_sandbox::SandboxChild;

use super::AccessReporter;

/// Time after which an interpreter that no call used is stopped.
const IDLE_TIME: Duration = Duration::from_secs(300);
/// Interpreter that has loaded the code of a tool and waits for the arguments of one call. Each answers one call, in a sandbox
/// of its own, so that no call sees anything of another.
#[derive(Default)]
pub(crate) struct WarmWorkers {
    idle: Mutex<Option<Worker>>,
    n_started: AtomicU64,
}

struct Worker {
    child: SandboxChild,
    accesses: Arc<AccessReporter>,
    /// Digest of the variables that it was started with.
    key: u64,
    number: u64,
}

impl WarmWorkers {
    /// Takes the waiting interpreter for a call, if it was started with these variables and still runs. Its accesses belong
    /// to the call from now on.
    pub(crate) async fn take(&self, key: u64, cx: &CallContext) -> Option<SandboxChild> {
        let worker = self.idle.lock().take()?;
        let mut child = worker.child;
        let is_alive = tokio::select! {
            biased;
            _ = child.wait() => false,
            () = std::future::ready(()) => true,
        };
        if !is_alive || worker.key != key {
            return None;
        }
        worker.accesses.set_call(cx);
        Some(child)
    }

    /// Keeps an interpreter for the next call, and stops it if none comes.
    pub(crate) fn keep(self: &Arc<Self>, child: SandboxChild, accesses: Arc<AccessReporter>, key: u64) {
        let number = self.n_started.fetch_add(1, Ordering::Relaxed);
        *self.idle.lock() = Some(Worker {
            child,
            accesses,
            key,
            number,
        });
        let workers = Arc::downgrade(self);
        tokio::spawn(stop_later(workers, number));
    }

    /// Returns `true` if an interpreter waits.
    pub(crate) fn has_one(&self) -> bool {
        self.idle.lock().is_some()
    }
}

async fn stop_later(workers: Weak<WarmWorkers>, number: u64) {
    sleep(IDLE_TIME).await;
    if let Some(workers) = workers.upgrade() {
        let mut idle = workers.idle.lock();
        // Dropping it ends its process.
        if idle.as_ref().is_some_and(|worker| worker.number == number) {
            *idle = None;
        }
    }
}
