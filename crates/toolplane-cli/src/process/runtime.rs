//! Runtimes, and the signals that end a verb.

use std::{future::Future, time::Duration};

use tokio::{
    runtime::{Builder, Runtime},
    signal::unix::{SignalKind, signal},
};

use crate::{error::CliError, exit::Exit};

/// Maximum time that the process waits for its threads at the end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// Runs a verb on this thread, which is fastest to start.
pub(crate) fn block_on<F>(verb: F) -> Result<Exit, CliError>
where
    F: Future<Output = Result<Exit, CliError>>,
{
    let runtime = build(Builder::new_current_thread().enable_all().build())?;
    finish(runtime, verb)
}

/// Runs a verb on a runtime with one thread per core.
pub(crate) fn block_on_all_cores<F>(verb: F) -> Result<Exit, CliError>
where
    F: Future<Output = Result<Exit, CliError>>,
{
    let runtime = build(Builder::new_multi_thread().enable_all().build())?;
    finish(runtime, verb)
}

fn build(runtime: std::io::Result<Runtime>) -> Result<Runtime, CliError> {
    runtime.map_err(|error| CliError::failed("the runtime could not be started").with_source(&error))
}

fn finish<F>(runtime: Runtime, verb: F) -> Result<Exit, CliError>
where
    F: Future<Output = Result<Exit, CliError>>,
{
    let result = runtime.block_on(verb);
    // Drops the remaining tasks, and with them the processes of servers that do not end. Needs a limit: a pending read
    // of stdin cannot be cancelled.
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    result
}

/// Receiver of the signals that end a verb.
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Handles SIGINT and SIGTERM from now on; before, they end the process at once.
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

    /// Waits for the next signal and returns the exit code for it.
    pub(crate) async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
        }
    }
}
