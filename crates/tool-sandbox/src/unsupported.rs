//! Systems other than Linux, on which no level works.

use crate::{SandboxChild, SandboxCommand, SandboxEnforcement, SandboxError, SandboxLevel};

/// Level of a sandbox, of which there is none.
#[derive(Debug)]
pub(crate) enum Backend {}

impl Backend {
    pub(crate) fn new(level: SandboxLevel) -> Result<Self, SandboxError> {
        Err(SandboxError::unavailable(
            level,
            "this system is not Linux",
            "run toolplane on Linux, for example in a virtual machine",
        ))
    }

    pub(crate) fn enforcement(&self) -> &SandboxEnforcement {
        match *self {}
    }

    pub(crate) fn hint(&self) -> &'static str {
        match *self {}
    }

    pub(crate) fn spawn(&self, _: SandboxCommand) -> Result<SandboxChild, SandboxError> {
        match *self {}
    }
}
