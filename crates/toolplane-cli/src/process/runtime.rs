//! Runtimes, and what ends a verb from outside.

use std::{future::Future, time::Duration};

use tokio::{
    runtime::{Builder, Runtime},
    signal::unix::{SignalKind, signal},
};

use crate::{error::CliError, exit::Exit};

/// How long the process waits for its own threads at the end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// Runs a verb on this thread: the fastest to start.
pub(crate) fn block_on<F>(verb: F) -> Result<Exit, CliError>
where
    F: Future<Output = Result<Exit, CliError>>,
{
    let runtime = build(Builder::new_current_thread().enable_all().build())?;
    finish(runtime, verb)
}

/// Runs a verb on as many threads as there are cores.
pub(crate) fn block_on_all_cores<F>(verb: F) -> Result<Exit, CliError>
where
    F: Future<Output = Result<Exit, CliError>>,
{
    let runtime = build(Builder::new_multi_thread().enable_all().build())?;
    finish(runtime, verb)
}

fn build(runtime: std::io::Result<Runtime>) -> Result<Runtime, CliError> {
    runtime.map_err(|error| CliError::failed("the runtime could not be build").with_source(&error))
}

fn finish<F>(runtime: Runtime, verb: F) -> Result<Exit, CliError>
where
    F: Future<Output = Result<Exit, CliError>>,
{
    let result = runtime.block_on(verb);
    // What still runs is dropped here, and with it the processes of servers that would not end. Not without a limit:
    // a read of stdin that is under way cannot be cancelled.
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    result
}

/// The signals that end a verb.
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Takes over SIGINT and SIGTERM, which until then end the process at once.
    pub(crate) fn listen() -> Result<Self, CliError> {
        let on = |kind| {
            signal(kind)
                .map_err(|error| CliError::failed("signals cannot be listened to").with_source(&error))
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
