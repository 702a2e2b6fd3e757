//! Running process of a sandbox.

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::oneshot;

use crate::event::{OutputObserver, StdoutObserver};
use crate::run::run;
use crate::{
    CollectedFile, SandboxError, SandboxExit, SandboxLevel, SandboxLimits, SandboxOutput, SkippedFile,
};

/// End of a process tree, reported by the task that supervises it.
#[derive(Debug)]
pub(crate) struct TreeEnd {
    pub(crate) exit: SandboxExit,
    pub(crate) files: Vec<CollectedFile>,
    pub(crate) skipped_files: Vec<SkippedFile>,
}

/// Running process of a sandbox, with its standard streams.
///
/// The whole process tree is killed when the value is dropped, when its first process ends, and when the process that
/// started it ends.
#[derive(Debug)]
pub struct SandboxChild {
    /// Standard input.
    pub stdin: Option<ChildStdin>,
    /// Standard output.
    pub stdout: Option<ChildStdout>,
    /// Standard error.
    pub stderr: Option<ChildStderr>,
    level: SandboxLevel,
    kill: Option<oneshot::Sender<()>>,
    end: oneshot::Receiver<Result<TreeEnd, SandboxError>>,
    exit: Option<SandboxExit>,
}

/// Ends of the channels that the supervisor of a tree holds.
#[derive(Debug)]
pub(crate) struct Supervision {
    /// Resolves when the tree is to be killed.
    pub(crate) kill: oneshot::Receiver<()>,
    /// Takes the end of the tree.
    pub(crate) report: oneshot::Sender<Result<TreeEnd, SandboxError>>,
}

impl SandboxChild {
    /// Creates the handle of a process, whose pipes it takes.
    pub(crate) fn new(process: &mut Child, level: SandboxLevel) -> (Self, Supervision) {
        let (kill, killed) = oneshot::channel();
        let (report, end) = oneshot::channel();
        let child = Self {
            stdin: process.stdin.take(),
            stdout: process.stdout.take(),
            stderr: process.stderr.take(),
            level,
            kill: Some(kill),
            end,
            exit: None,
        };
        (child, Supervision { kill: killed, report })
    }

    /// Returns the level that the process runs at.
    #[must_use]
    pub fn level(&self) -> SandboxLevel {
        self.level
    }

    /// Kills the process tree. [`wait`](Self::wait) returns when it is gone.
    pub fn kill(&mut self) {
        if let Some(kill) = self.kill.take() {
            // The supervisor is gone if the tree ended by itself.
            let _ = kill.send(());
        }
    }

    /// Waits until the first process has ended and its tree is gone.
    ///
    /// # Errors
    /// Returns [`SandboxError::Spawn`] if the sandbox could not be set up.
    ///
    /// # Cancellation
    /// Dropping the future leaves the process running; call the method again.
    pub async fn wait(&mut self) -> Result<SandboxExit, SandboxError> {
        match self.exit {
            Some(exit) => Ok(exit),
            None => Ok(self.wait_end().await?.exit),
        }
    }

    /// Writes the standard input, closes it, and follows the process to its end as [`Sandbox::run`](crate::Sandbox::run) does: the
    /// output is kept up to its limit, and the tree is killed at the wall time, which counts from here.
    ///
    /// # Errors
    /// Returns [`SandboxError::Spawn`] if the sandbox could not be set up.
    ///
    /// # Cancellation
    /// Dropping the future kills the process tree.
    pub async fn finish(self, input: Vec<u8>, limits: &SandboxLimits) -> Result<SandboxOutput, SandboxError> {
        run(self, input, limits, None).await
    }

    /// Does what [`finish`](Self::finish) does, and passes the standard output to an observer while it is read, as far as it is
    /// kept. The observer must not block.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    ///
    /// # Cancellation
    /// Dropping the future kills the process tree.
    pub async fn finish_observed(
        self,
        input: Vec<u8>,
        limits: &SandboxLimits,
        on_stdout: OutputObserver,
    ) -> Result<SandboxOutput, SandboxError> {
        run(self, input, limits, Some(StdoutObserver(on_stdout))).await
    }

    /// Waits like [`wait`](Self::wait) and returns the collected files.
    pub(crate) async fn wait_end(&mut self) -> Result<TreeEnd, SandboxError> {
        let end = (&mut self.end)
            .await
            .unwrap_or_else(|_| Err(SandboxError::spawn("its end was already reported", None)))?;
        self.exit = Some(end.exit);
        Ok(end)
    }
}
