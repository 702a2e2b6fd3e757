//! Runtimes, and what ends a verb from outside.

use std::future::Future;

use tokio::{
    runtime::{Builder, Runtime},
    signal::unix::{SignalKind, signal},
};

use crate::{exit::Exit, failure::Failure};

/// Runs a verb on this thread: the fastest to start.
pub(crate) fn block_on<F>(verb: F) -> Result<Exit, Failure>
where
    F: Future<Output = Result<Exit, Failure>>,
{
    let runtime = started(Builder::new_current_thread().enable_all().build())?;
    finish(runtime, verb)
}

/// Runs a verb on as many threads as there are cores.
pub(crate) fn block_on_all_cores<F>(verb: F) -> Result<Exit, Failure>
where
    F: Future<Output = Result<Exit, Failure>>,
{
    let runtime = started(Builder::new_multi_thread().enable_all().build())?;
    finish(runtime, verb)
}

fn started(runtime: std::io::Result<Runtime>) -> Result<Runtime, Failure> {
    runtime.map_err(|error| Failure::failed("the runtime could not be started").with_source(&error))
}

fn finish<F>(runtime: Runtime, verb: F) -> Result<Exit, Failure>
where
    F: Future<Output = Result<Exit, Failure>>,
{
    let result = runtime.block_on(verb);
    // A read of stdin cannot be cancelled: whoever waits for it would keep the process alive.
    runtime.shutdown_background();
    result
}

/// The signals that end a verb.
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Takes over SIGINT and SIGTERM, which until then end the process at once.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let on = |kind| {
            signal(kind).map_err(|error| Failure::failed("signals cannot be listened to").with_source(&error))
        };
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
        })
    }

    /// Waits for the next one: what the process ends with then.
    pub(crate) async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
        }
    }
}
