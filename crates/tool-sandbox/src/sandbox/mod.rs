//! Sandbox: a level that was found to work, and the runs at it.

mod sandboxes;

use std::sync::Arc;

use tokio::task::spawn_blocking;

pub use self::sandboxes::Sandboxes;
use crate::child::SandboxChild;
use crate::{SandboxCommand, SandboxEnforcement, SandboxError, SandboxLevel, SandboxOutput, run};

#[cfg(target_os = "linux")]
use crate::linux::Backend;
#[cfg(not(target_os = "linux"))]
use crate::unsupported::Backend;

/// Sandbox at a level that works on this machine. Clones are cheap and share what was found.
///
/// # Examples
///
/// ```no_run
/// use tool_sandbox::{Sandbox, SandboxCommand};
///
/// # async fn example() -> Result<(), tool_sandbox::SandboxError> {
/// let sandbox = Sandbox::detect().await?;
/// let output = sandbox.run(SandboxCommand::new("/usr/bin/true")).await?;
/// assert!(output.exit.is_success());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Sandbox {
    backend: Arc<Backend>,
}

impl Sandbox {
    /// Finds the strongest level that works here: [`Bwrap`](SandboxLevel::Bwrap), else
    /// [`Landlock`](SandboxLevel::Landlock). Each is tried with a real process, so keep the result.
    ///
    /// # Errors
    /// Returns [`SandboxError::Unavailable`] with the failures of all levels if none works.
    ///
    /// # Cancellation
    /// Dropping the future ends the process that was started to try a level.
    pub async fn detect() -> Result<Self, SandboxError> {
        match Self::at(SandboxLevel::Bwrap).await {
            Ok(sandbox) => Ok(sandbox),
            Err(strong) => Self::at(SandboxLevel::Landlock)
                .await
                .map_err(|weak| both(&strong, &weak)),
        }
    }

    /// Creates a sandbox at `level`, and at no other.
    ///
    /// # Errors
    /// Returns [`SandboxError::Unavailable`] with what to install if the level does not work here.
    ///
    /// # Cancellation
    /// Dropping the future ends the process that was started to try the level.
    pub async fn at(level: SandboxLevel) -> Result<Self, SandboxError> {
        let sandbox = Self {
            backend: Arc::new(Backend::new(level)?),
        };
        sandbox.try_out().await?;
        Ok(sandbox)
    }

    /// Returns the level of the sandbox.
    #[must_use]
    pub fn level(&self) -> SandboxLevel {
        self.enforcement().level
    }

    /// Returns the scopes in which the limits hold on this machine.
    #[must_use]
    pub fn enforcement(&self) -> &SandboxEnforcement {
        self.backend.enforcement()
    }

    /// Runs a command to its end, and kills its process tree at a limit.
    ///
    /// # Errors
    /// Returns [`SandboxError::Refused`] for a command that no sandbox accepts, and [`SandboxError::Spawn`] if the sandbox
    /// could not be set up. A program that fails is no error: [`SandboxOutput::exit`] reports it.
    ///
    /// # Cancellation
    /// Dropping the future kills the process tree.
    pub async fn run(&self, mut command: SandboxCommand) -> Result<SandboxOutput, SandboxError> {
        let input = std::mem::take(&mut command.stdin);
        let limits = command.limits.clone();
        let on_stdout = command.on_stdout.take();
        let sandbox = self.clone();
        // The start of a process takes some milliseconds, in which other tasks of this thread go on.
        let child = spawn_blocking(move || sandbox.spawn(command))
            .await
            .map_err(|error| {
                SandboxError::spawn("its start was cancelled", std::io::Error::other(error))
            })??;
        run::run(child, input, &limits, on_stdout).await
    }

    /// Starts a command whose streams the caller reads and writes. The limits of wall time and of output are the caller's
    /// to keep, and the bytes of [`SandboxCommand::stdin`] are not used.
    ///
    /// The function must be called in a Tokio runtime. It returns before the sandbox is set up: a failure to do so ends
    /// the streams and is returned by [`SandboxChild::wait`].
    ///
    /// # Errors
    /// Returns [`SandboxError::Refused`] for a command that no sandbox accepts, and [`SandboxError::Spawn`] if the process
    /// cannot be started.
    pub fn spawn(&self, command: SandboxCommand) -> Result<SandboxChild, SandboxError> {
        command.check()?;
        self.backend.spawn(command)
    }

    /// Runs a program that does nothing.
    async fn try_out(&self) -> Result<(), SandboxError> {
        let level = self.level();
        let command = SandboxCommand::new("/bin/sh").args(["-c", "exit 0"]);
        match self.run(command).await {
            Ok(output) if output.exit.is_success() => Ok(()),
            Ok(output) => Err(SandboxError::unavailable(
                level,
                format!(
                    "a trial ended with {:?}: {}",
                    output.exit,
                    String::from_utf8_lossy(&output.stderr).trim()
                ),
                self.backend.hint(),
            )),
            Err(error) => Err(SandboxError::unavailable(
                level,
                error.to_string(),
                self.backend.hint(),
            )),
        }
    }
}

fn both(strong: &SandboxError, weak: &SandboxError) -> SandboxError {
    match strong {
        SandboxError::Unavailable { level, reason, hint } => {
            SandboxError::unavailable(*level, format!("{reason}; and {weak}"), hint.clone())
        }
        other => SandboxError::unavailable(
            SandboxLevel::Bwrap,
            format!("{other}; and {weak}"),
            "install bubblewrap",
        ),
    }
}
