//! Control group of one process tree.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::sleep;

use super::find::Hierarchy;
use crate::SandboxLimits;

/// Processes that a sandbox adds to its tree: the first process of its namespace.
const OWN_PROCESSES: u64 = 1;

/// Control group of one process tree. It is removed on drop.
#[derive(Debug)]
pub(crate) struct TreeGroup {
    folders: Vec<PathBuf>,
    /// File with the number of processes that the kernel killed for want of memory.
    events: PathBuf,
}

impl TreeGroup {
    pub(super) fn create(hierarchy: &Hierarchy, name: &str, limits: &SandboxLimits) -> io::Result<Self> {
        let memory = limits.memory.to_string();
        let pids = (u64::from(limits.processes) + OWN_PROCESSES).to_string();
        match hierarchy {
            Hierarchy::Unified(parent) => {
                let folder = parent.join(name);
                let group = Self::in_folders(vec![folder.clone()], folder.join("memory.events"))?;
                write(&folder, "memory.max", &memory)?;
                // Absent without swap.
                let _ = write(&folder, "memory.swap.max", "0");
                write(&folder, "memory.oom.group", "1")?;
                write(&folder, "pids.max", &pids)?;
                Ok(group)
            }
            Hierarchy::Separate {
                memory: parent,
                pids: counted,
            } => {
                let folder = parent.join(name);
                let counted = counted.join(name);
                let events = folder.join("memory.oom_control");
                let group = Self::in_folders(vec![folder.clone(), counted.clone()], events)?;
                write(&folder, "memory.limit_in_bytes", &memory)?;
                // Absent without accounting of swap.
                let _ = write(&folder, "memory.memsw.limit_in_bytes", &memory);
                write(&counted, "pids.max", &pids)?;
                Ok(group)
            }
        }
    }

    fn in_folders(folders: Vec<PathBuf>, events: PathBuf) -> io::Result<Self> {
        // Made before the folders are, so that a failure removes those that exist.
        let group = Self { folders, events };
        for folder in &group.folders {
            fs::create_dir(folder)?;
        }
        Ok(group)
    }

    /// Moves a process into the group. Processes that it starts later belong to the group too.
    pub(crate) fn add(&self, pid: u32) -> io::Result<()> {
        self.folders
            .iter()
            .try_for_each(|folder| write(folder, "cgroup.procs", &pid.to_string()))
    }

    /// Removes the group once its processes have left it, which takes the kernel a moment.
    pub(crate) async fn remove(self) {
        const ATTEMPTS: usize = 50;
        const PAUSE: Duration = Duration::from_millis(5);
        for _ in 0..ATTEMPTS {
            if self
                .folders
                .iter()
                .all(|folder| fs::remove_dir(folder).is_ok() || !folder.exists())
            {
                return;
            }
            sleep(PAUSE).await;
        }
    }

    /// Returns `true` if the kernel killed a process of the group for want of memory.
    pub(crate) fn was_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(&self.events).unwrap_or_default();
        events
            .lines()
            .filter_map(|line| line.strip_prefix("oom_kill "))
            .any(|count| count.trim() != "0")
    }
}

impl Drop for TreeGroup {
    fn drop(&mut self) {
        for folder in &self.folders {
            // It may never have been made; one that a process is about to leave is removed by the next start.
            let _ = fs::remove_dir(folder);
        }
    }
}

fn write(folder: &Path, file: &str, value: &str) -> io::Result<()> {
    fs::write(folder.join(file), value)
}
