//! Task that follows a process tree from its start to its end.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, openat, readlinkat};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::sync::oneshot;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::sleep;

use super::options::MARK;
use super::prelude::Prelude;
use super::staging::StagedPath;
use crate::child::{Supervision, TreeEnd};
use crate::linux::cgroup::TreeGroup;
use crate::linux::collect::{self, Collection};
use crate::linux::exit::{end, finish, lost};
use crate::network::{Proxy, serve};
use crate::{SandboxCollect, SandboxError};

/// Time between two looks at the root of a sandbox that is being set up.
const SETUP_INTERVAL: Duration = Duration::from_millis(1);

/// Process of bubblewrap that was started, and what belongs to it.
pub(super) struct Start {
    pub(super) child: Child,
    pub(super) info: OwnedFd,
    pub(super) gate: OwnedFd,
    pub(super) mark: String,
    /// First program of a sandbox that reaches hosts, and the proxy that it reaches them through.
    pub(super) prelude: Option<(Prelude, Proxy)>,
    pub(super) group: Option<TreeGroup>,
    pub(super) staged: Vec<StagedPath>,
    pub(super) collect: Option<SandboxCollect>,
}

/// First process of a sandbox, and its work directory if files are collected from it.
struct Opened {
    pid: Pid,
    init: AsyncFd<OwnedFd>,
    work: Option<OwnedFd>,
}

/// Report of bubblewrap.
#[derive(Deserialize)]
struct Info {
    #[serde(rename = "child-pid")]
    child_pid: i32,
}

/// Follows the tree and reports its end. The tree is killed on a message or when `kill` is dropped.
pub(super) async fn supervise(start: Start, supervision: Supervision) {
    // The receiver is gone if nobody waits for the end.
    let _ = supervision.report.send(follow(start, supervision.kill).await);
}

async fn follow(start: Start, mut kill: oneshot::Receiver<()>) -> Result<TreeEnd, SandboxError> {
    let Start {
        mut child,
        info,
        gate,
        mark,
        prelude,
        group,
        staged,
        collect,
    } = start;
    let opened = tokio::select! {
        opened = open(info, &mark, group.as_ref(), collect.is_some()) => opened,
        _ = &mut kill => Err(io::Error::other("it was killed before it started")),
    };
    let mut gate = File::from(gate);
    let opened = opened.and_then(|opened| gate.write_all(b"1").map(|()| opened));
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) => {
            end(&mut child).await?;
            // The end of this pipe starts the program, so it stays open until there is none.
            drop(gate);
            return Err(SandboxError::spawn("bubblewrap did not set it up", error));
        }
    };
    // The proxy ends with this set.
    let mut proxies = JoinSet::new();
    if let Some((prelude, proxy)) = prelude {
        let listener = tokio::select! {
            listener = prelude.listener(opened.pid) => listener,
            _ = &mut kill => Err(io::Error::other("it was killed before it started")),
        };
        match listener {
            Ok(listener) => {
                proxies.spawn(serve(listener, Arc::new(proxy)));
            }
            Err(error) => {
                kill_tree(&opened);
                end(&mut child).await?;
                return Err(SandboxError::spawn("its proxy does not start", error));
            }
        }
    }
    let status = tokio::select! {
        status = child.wait() => status.map_err(lost)?,
        _ = kill => {
            kill_tree(&opened);
            end(&mut child).await?
        }
    };
    kill_tree(&opened);
    // The first process ends when all others of its namespace are gone.
    let _gone = opened.init.readable().await.map_err(lost)?;
    let exit = finish(status, group).await;
    drop(staged);
    let Collection { files, skipped, .. } = match (opened.work, collect) {
        (Some(work), Some(wanted)) => spawn_blocking(move || collect::collect(&work, &wanted))
            .await
            .map_err(|error| lost(io::Error::other(error)))?,
        _ => Collection::default(),
    };
    Ok(TreeEnd {
        exit,
        files,
        skipped_files: skipped,
    })
}

/// Prepares everything that must exist before the program starts.
async fn open(
    info: OwnedFd,
    mark: &str,
    group: Option<&TreeGroup>,
    is_collected: bool,
) -> io::Result<Opened> {
    let mut text = Vec::new();
    pipe::Receiver::from_owned_fd(info)?
        .read_to_end(&mut text)
        .await?;
    let info: Info = serde_json::from_slice(&text)?;
    let pid = Pid::from_raw(info.child_pid).ok_or(io::ErrorKind::InvalidData)?;
    let init = watch(pid)?;
    if let Some(group) = group {
        group.add(pid.as_raw_nonzero().get().unsigned_abs())?;
    }
    let work = if is_collected {
        Some(work_directory(pid, mark).await?)
    } else {
        None
    };
    Ok(Opened { pid, init, work })
}

/// Returns a descriptor that becomes readable when the process ends.
#[expect(
    deprecated,
    reason = "the constructor that replaces it is unsafe; an `OwnedFd` is the descriptor that it says"
)]
fn watch(pid: Pid) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(pidfd_open(pid, PidfdFlags::NONBLOCK)?)
}

/// Opens the work directory of a sandbox, once its root is in place: until then the process has another one.
async fn work_directory(pid: Pid, mark: &str) -> io::Result<OwnedFd> {
    let path = format!("/proc/{}/root", pid.as_raw_nonzero());
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    loop {
        // It fails if the process has ended.
        let root = openat(CWD, &path, flags | OFlags::PATH, Mode::empty())?;
        if readlinkat(&root, MARK, Vec::new()).is_ok_and(|found| found.as_bytes() == mark.as_bytes()) {
            return Ok(openat(
                &root,
                "job",
                flags | OFlags::RDONLY | OFlags::NOFOLLOW,
                Mode::empty(),
            )?);
        }
        sleep(SETUP_INTERVAL).await;
    }
}

fn kill_tree(opened: &Opened) {
    // The tree may be gone already.
    let _ = pidfd_send_signal(opened.init.get_ref(), Signal::KILL);
}
