//! Thread that starts all sandboxed processes.
//!
//! The kernel ends a child with its parent (`PR_SET_PDEATHSIG`) when the *thread* that started it ends. Threads of a runtime
//! come and go, so one thread that lives as long as the process starts them all.

use std::io;
use std::sync::{OnceLock, mpsc};
use std::thread;

type Job = Box<dyn FnOnce() + Send>;

static SPAWNER: OnceLock<Option<mpsc::Sender<Job>>> = OnceLock::new();

/// Runs `job` on the spawner thread and returns its result.
pub(super) fn run<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let gone = || io::Error::other("the thread that starts processes is gone");
    let spawner = SPAWNER.get_or_init(start).as_ref().ok_or_else(gone)?;
    let (reply, result) = mpsc::sync_channel(1);
    let job = move || {
        // The receiver waits until this is sent.
        let _ = reply.send(job());
    };
    spawner.send(Box::new(job)).map_err(|_| gone())?;
    result.recv().map_err(|_| gone())
}

/// Runs `job` on the spawner thread later. It is lost if the thread could not be started, and so is all that it could do.
pub(super) fn post(job: impl FnOnce() + Send + 'static) {
    if let Some(spawner) = SPAWNER.get_or_init(start) {
        let _ = spawner.send(Box::new(job));
    }
}

fn start() -> Option<mpsc::Sender<Job>> {
    let (sender, jobs) = mpsc::channel::<Job>();
    thread::Builder::new()
        .name("sandbox-spawner".to_owned())
        .spawn(move || {
            for job in jobs {
                job();
            }
        })
        .ok()?;
    Some(sender)
}
