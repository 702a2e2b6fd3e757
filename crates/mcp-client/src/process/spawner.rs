use std::{fmt, future::Future, pin::Pin};

use tokio::io::{AsyncRead, AsyncWrite};

use super::Command;

/// Future of a [`Spawner`].
pub type SpawnFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Port that starts programs in a place of its own, such as a sandbox: see [`Command::spawner`].
///
/// Without one, a program is started as a child of this process.
pub trait Spawner: Send + Sync {
    /// Starts the program of a command. The implementation decides which environment it gets.
    ///
    /// # Errors
    /// The reason why the program cannot be started, as a sentence without a period.
    ///
    /// # Cancellation
    /// Dropping the future must leave no program behind.
    fn spawn<'a>(&'a self, command: &'a Command) -> SpawnFuture<'a, Result<SpawnedProgram, String>>;
}

/// Running program that a [`Spawner`] started.
#[non_exhaustive]
pub struct SpawnedProgram {
    /// Standard input.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// Standard output.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Standard error.
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// Control over the program and its descendants.
    pub control: Box<dyn ProgramControl>,
}

/// Control over a program and all of its descendants. Dropping it kills them.
pub trait ProgramControl: Send {
    /// Kills the program and its descendants.
    fn kill(&mut self);

    /// Waits until the program and its descendants are gone. Returns the way in which it ended, to follow "the server":
    /// for example `has ended with exit status: 1`.
    ///
    /// # Cancellation
    /// Dropping the future leaves the program running; the method may be called again.
    fn wait(&mut self) -> SpawnFuture<'_, String>;
}

impl SpawnedProgram {
    /// Creates a running program from its streams and the control over it.
    #[must_use]
    pub fn new(
        stdin: impl AsyncWrite + Send + Unpin + 'static,
        stdout: impl AsyncRead + Send + Unpin + 'static,
        stderr: impl AsyncRead + Send + Unpin + 'static,
        control: impl ProgramControl + 'static,
    ) -> Self {
        Self {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
            control: Box::new(control),
        }
    }
}

impl fmt::Debug for SpawnedProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpawnedProgram").finish_non_exhaustive()
    }
}
