//! Process that holds the process group of a tree.
//!
//! The sandboxed process joins the group and cannot leave it, so that one signal reaches the whole tree. The holder waits
//! for the end of its standard input, which comes with the end of this process whatever ended it, and then kills the group.

use std::io;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::{Duration, sleep};

const SCRIPT: &str = "read -r _; kill -KILL 0";

/// Process that holds the process group of a tree. The group is killed on drop.
#[derive(Debug)]
pub(super) struct Holder {
    process: Child,
    group: Pid,
}

impl Holder {
    pub(super) fn start() -> io::Result<Self> {
        let process = Command::new("/bin/sh")
            .args(["-c", SCRIPT])
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let id = process.id().and_then(|id| i32::try_from(id).ok());
        let group = id.and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { process, group })
    }

    /// Returns the id of the group as the system's own type.
    pub(super) fn group(&self) -> i32 {
        self.group.as_raw_nonzero().get()
    }

    /// Returns the id of the group.
    pub(super) fn id(&self) -> u32 {
        self.group().unsigned_abs()
    }

    /// Kills the group and waits until it is empty.
    pub(super) async fn end(mut self) {
        const ATTEMPTS: usize = 500;
        const PAUSE: Duration = Duration::from_millis(2);
        self.kill();
        let _ = self.process.wait().await;
        for _ in 0..ATTEMPTS {
            if test_kill_process_group(self.group).is_err() {
                return;
            }
            sleep(PAUSE).await;
        }
    }

    /// Kills the group.
    pub(super) fn kill(&self) {
        // The group is gone if all its processes have ended.
        let _ = kill_process_group(self.group, Signal::KILL);
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // Once the holder has been waited for, its number may belong to another group.
        if self.process.id().is_some() {
            self.kill();
        }
    }
}
