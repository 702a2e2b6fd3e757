//! Task that follows a process tree from its start to its end.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::sync::oneshot;

use crate::child::TreeEnd;
use crate::{SandboxError, SandboxExit};

/// Start of a bubblewrap process.
pub(super) struct Start {
    pub(super) child: Child,
    pub(super) info: OwnedFd,
    pub(super) gate: OwnedFd,
}

/// Report of bubblewrap.
#[derive(Deserialize)]
struct Info {
    #[serde(rename = "child-pid")]
    child_pid: i32,
}

/// Follows the tree and reports its end. The tree is killed on a message or when `kill` is dropped.
pub(super) async fn supervise(
    start: Start,
    kill: oneshot::Receiver<()>,
    report: oneshot::Sender<Result<TreeEnd, SandboxError>>,
) {
    // The receiver is gone if nobody waits for the end.
    let _ = report.send(follow(start, kill).await);
}

async fn follow(start: Start, mut kill: oneshot::Receiver<()>) -> Result<TreeEnd, SandboxError> {
    let Start {
        mut child,
        info,
        gate,
    } = start;
    let mut gate = File::from(gate);
    let init = tokio::select! {
        init = first_process(info) => init,
        _ = &mut kill => Err(io::Error::other("it was killed before it started")),
    };
    let opened = init.and_then(|init| {
        gate.write_all(b"1")?;
        Ok(init)
    });
    let init = match opened {
        Ok(init) => init,
        Err(error) => {
            end(&mut child).await?;
            // An end of this pipe starts the program, so it stays open until there is none.
            drop(gate);
            return Err(SandboxError::spawn("bubblewrap did not set it up", error));
        }
    };
    let status = tokio::select! {
        status = child.wait() => status.map_err(lost)?,
        _ = kill => {
            // The tree may be gone already.
            let _ = pidfd_send_signal(init.get_ref(), Signal::KILL);
            end(&mut child).await?
        }
    };
    // The first process ends when all others of its namespace are gone.
    let _ = pidfd_send_signal(init.get_ref(), Signal::KILL);
    let _gone = init.readable().await.map_err(lost)?;
    Ok(TreeEnd {
        exit: exit(status),
        files: Vec::new(),
        skipped_files: Vec::new(),
    })
}

/// Reads the report of bubblewrap and returns its first process in the sandbox.
#[expect(
    deprecated,
    reason = "the constructor that replaces it is unsafe; an `OwnedFd` is the descriptor that it says"
)]
async fn first_process(info: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    let mut text = Vec::new();
    let mut info = pipe::Receiver::from_owned_fd(info)?;
    info.read_to_end(&mut text).await?;
    let info: Info = serde_json::from_slice(&text)?;
    let pid = Pid::from_raw(info.child_pid).ok_or(io::ErrorKind::InvalidData)?;
    AsyncFd::new(pidfd_open(pid, PidfdFlags::NONBLOCK)?)
}

async fn end(child: &mut Child) -> Result<ExitStatus, SandboxError> {
    // The process may have ended already.
    let _ = child.start_kill();
    child.wait().await.map_err(lost)
}

fn lost(error: io::Error) -> SandboxError {
    SandboxError::spawn("its process cannot be waited for", error)
}

/// Translates the status of a wrapper, which reports a signal as 128 and its number.
fn exit(status: ExitStatus) -> SandboxExit {
    match (status.code(), status.signal()) {
        (Some(code @ 129..=192), _) => signal(code - 128),
        (Some(code), _) => SandboxExit::Code(code),
        (None, Some(number)) => signal(number),
        (None, None) => SandboxExit::Signal(0),
    }
}

fn signal(number: i32) -> SandboxExit {
    if number == libc::SIGXCPU {
        SandboxExit::TimedOut
    } else {
        SandboxExit::Signal(number)
    }
}
