//! Task that follows a process group to its end.

use std::io;

use rustix::fs::{CWD, Mode, OFlags, openat};
use tokio::process::Child;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use super::holder::Holder;
use super::paths::WorkFolder;
use crate::child::{Supervision, TreeEnd};
use crate::linux::cgroup::TreeGroup;
use crate::linux::collect::{self, Collection};
use crate::linux::exit::{end, finish, lost};
use crate::{SandboxCollect, SandboxError};

/// Process that was started, and what belongs to it.
pub(super) struct Start {
    pub(super) child: Child,
    pub(super) holder: Holder,
    pub(super) group: Option<TreeGroup>,
    pub(super) work: WorkFolder,
    pub(super) collect: Option<SandboxCollect>,
}

/// Follows the group and reports its end. The group is killed on a message or when `kill` is dropped.
pub(super) async fn supervise(start: Start, supervision: Supervision) {
    // The receiver is gone if nobody waits for the end.
    let _ = supervision.report.send(follow(start, supervision.kill).await);
}

async fn follow(start: Start, kill: oneshot::Receiver<()>) -> Result<TreeEnd, SandboxError> {
    let Start {
        mut child,
        holder,
        group,
        work,
        collect,
    } = start;
    let status = tokio::select! {
        status = child.wait() => status.map_err(lost)?,
        _ = kill => {
            holder.kill();
            end(&mut child).await?
        }
    };
    holder.end().await;
    let exit = finish(status, group).await;
    let files = spawn_blocking(move || gather(&work, collect)).await;
    let Collection { files, skipped, .. } = files
        .map_err(io::Error::other)
        .and_then(std::convert::identity)
        .map_err(lost)?;
    Ok(TreeEnd {
        exit,
        files,
        skipped_files: skipped,
    })
}

/// Collects the files and removes the work directory.
fn gather(work: &WorkFolder, collect: Option<SandboxCollect>) -> io::Result<Collection> {
    let Some(wanted) = collect else {
        return Ok(Collection::default());
    };
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = openat(CWD, work.job(), flags, Mode::empty())?;
    Ok(collect::collect(&root, &wanted))
}
