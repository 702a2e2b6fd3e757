//! Status of a process, as a sandbox reports it.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use tokio::process::Child;

use super::cgroup::TreeGroup;
use crate::{SandboxError, SandboxExit};

/// Kills a process and waits for it.
pub(super) async fn end(child: &mut Child) -> Result<ExitStatus, SandboxError> {
    // The process may have ended already.
    let _ = child.start_kill();
    child.wait().await.map_err(lost)
}

/// Creates the error of a process that cannot be waited for.
pub(super) fn lost(error: io::Error) -> SandboxError {
    SandboxError::spawn("its process cannot be waited for", error)
}

/// Returns the exit of a tree and removes its group.
pub(super) async fn finish(status: ExitStatus, group: Option<TreeGroup>) -> SandboxExit {
    let mut exit = translate(status);
    if let Some(group) = group {
        if group.was_out_of_memory() && !exit.is_success() {
            exit = SandboxExit::OutOfMemory;
        }
        group.remove().await;
    }
    exit
}

/// Translates the status of a wrapper, which reports a signal as 128 and its number.
fn translate(status: ExitStatus) -> SandboxExit {
    match (status.code(), status.signal()) {
        (Some(code @ 129..=192), _) => signal(code - 128),
        (Some(code), _) => SandboxExit::Code(code),
        (None, Some(number)) => signal(number),
        (None, None) => SandboxExit::Signal(0),
    }
}

/// Translates a signal. The limit of CPU time has one of its own.
fn signal(number: i32) -> SandboxExit {
    if number == libc::SIGXCPU {
        SandboxExit::TimedOut
    } else {
        SandboxExit::Signal(number)
    }
}
