//! Sandboxes of a machine, found once.

use tokio::sync::OnceCell;

use crate::{Sandbox, SandboxError, SandboxLevel};

/// Sandboxes of this machine, each found at its first use and kept.
///
/// # Examples
///
/// ```no_run
/// use tool_sandbox::{SandboxCommand, Sandboxes};
///
/// # async fn example() -> Result<(), tool_sandbox::SandboxError> {
/// let sandboxes = Sandboxes::default();
/// for _ in 0..2 {
///     // The levels of the machine are tried once.
///     let sandbox = sandboxes.get(None).await?;
///     sandbox.run(SandboxCommand::new("/usr/bin/true")).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Sandboxes {
    strongest: OnceCell<Sandbox>,
    bwrap: OnceCell<Sandbox>,
    landlock: OnceCell<Sandbox>,
    unsandboxed: OnceCell<Sandbox>,
}

impl Sandboxes {
    /// Returns the sandbox at `level`, or at the strongest level that works here if it is `None`. A level that does not work
    /// is tried again by the next call.
    ///
    /// # Errors
    /// Returns [`SandboxError::Unavailable`] if the level, or every level, does not work here.
    ///
    /// # Cancellation
    /// Dropping the future ends the process that was started to try a level.
    pub async fn get(&self, level: Option<SandboxLevel>) -> Result<Sandbox, SandboxError> {
        let cell = match level {
            None => &self.strongest,
            Some(SandboxLevel::Bwrap) => &self.bwrap,
            Some(SandboxLevel::Landlock) => &self.landlock,
            Some(SandboxLevel::Unsandboxed) => &self.unsandboxed,
        };
        let found = cell.get_or_try_init(|| async move {
            match level {
                None => Sandbox::detect().await,
                Some(level) => Sandbox::at(level).await,
            }
        });
        found.await.cloned()
    }
}
