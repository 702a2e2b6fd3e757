use tokio::sync::OnceCell;
use tool_sandbox::{Sandbox, SandboxError, SandboxLevel};

use crate::settings::SandboxChoice;

/// Sandboxes of this machine, found at their first use.
#[derive(Default)]
pub(crate) struct Sandboxes {
    strongest: OnceCell<Sandbox>,
    bwrap: OnceCell<Sandbox>,
    landlock: OnceCell<Sandbox>,
    none: OnceCell<Sandbox>,
}

impl Sandboxes {
    /// Returns the sandbox of a tool. A level that does not work is tried again by the next call.
    pub(crate) async fn get(&self, choice: SandboxChoice) -> Result<Sandbox, SandboxError> {
        let (cell, level) = match choice {
            SandboxChoice::Auto => (&self.strongest, None),
            SandboxChoice::Bwrap => (&self.bwrap, Some(SandboxLevel::Bwrap)),
            SandboxChoice::Landlock => (&self.landlock, Some(SandboxLevel::Landlock)),
            SandboxChoice::None => (&self.none, Some(SandboxLevel::Unsandboxed)),
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
