//! Control groups of this machine in which this process can create others.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use super::group::TreeGroup;
use crate::SandboxLimits;

/// Start of the name of each group, followed by the id of the process that made it and a number.
const PREFIX: &str = "tool-sandbox-";

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Hierarchy in which groups are created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hierarchy {
    /// Version 2: one directory for all controllers.
    Unified(PathBuf),
    /// Version 1: a directory for memory and one for the number of processes.
    Separate { memory: PathBuf, pids: PathBuf },
}

/// Control groups in which this process can create others.
#[derive(Clone, Debug)]
pub(crate) struct Cgroups {
    hierarchy: Hierarchy,
}

impl Cgroups {
    /// Finds a hierarchy in which a group with limits can be created and a process moved, by doing so.
    pub(crate) fn find() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        candidates(&mounts, &own).into_iter().find_map(|hierarchy| {
            let cgroups = Self { hierarchy };
            cgroups.remove_stale();
            cgroups.is_usable().then_some(cgroups)
        })
    }

    /// Creates a group with the limits of memory and processes.
    pub(crate) fn create(&self, limits: &SandboxLimits) -> io::Result<TreeGroup> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        TreeGroup::create(&self.hierarchy, &name, limits)
    }

    fn is_usable(&self) -> bool {
        let Ok(group) = self.create(&SandboxLimits::default()) else {
            return false;
        };
        let Ok(mut process) = waiting_process() else {
            return false;
        };
        let moved = group.add(process.id());
        // Its input ends with it, and so does the process.
        drop(process.stdin.take());
        let ended = process.wait();
        moved.is_ok() && ended.is_ok()
    }

    /// Removes the empty groups of processes that are gone.
    fn remove_stale(&self) {
        for folder in self.hierarchy.folders() {
            let names = fs::read_dir(folder).into_iter().flatten().flatten();
            for entry in names {
                let name = entry.file_name();
                let owner = name.to_str().and_then(owner);
                if owner.is_some_and(|owner| !Path::new("/proc").join(owner).exists()) {
                    // A group that is not empty stays.
                    let _ = fs::remove_dir(entry.path());
                }
            }
        }
    }
}

impl Hierarchy {
    fn folders(&self) -> Vec<&Path> {
        match self {
            Self::Unified(folder) => vec![folder],
            Self::Separate { memory, pids } => vec![memory, pids],
        }
    }
}

/// Returns the process id in the name of a group.
fn owner(name: &str) -> Option<&str> {
    name.strip_prefix(PREFIX)?.split_once('-').map(|(owner, _)| owner)
}

fn waiting_process() -> io::Result<Child> {
    Command::new("/bin/sh")
        .args(["-c", "read -r _"])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Returns the hierarchies to try, given `/proc/self/mounts` and `/proc/self/cgroup`: this process's own group first, since
/// groups below it keep to its limits, then those above it.
fn candidates(mounts: &str, own: &str) -> Vec<Hierarchy> {
    let mut found = Vec::new();
    if let Some(root) = mount(mounts, "cgroup2", None) {
        let path = own_path(own, str::is_empty);
        found.extend(
            folders(&root, &path)
                .into_iter()
                .filter(|folder| controls(folder))
                .map(Hierarchy::Unified),
        );
    }
    let memory = version_1(mounts, own, "memory");
    let pids = version_1(mounts, own, "pids");
    for memory in &memory {
        found.extend(pids.iter().map(|pids| Hierarchy::Separate {
            memory: memory.clone(),
            pids: pids.clone(),
        }));
    }
    found
}

fn version_1(mounts: &str, own: &str, controller: &str) -> Vec<PathBuf> {
    let Some(root) = mount(mounts, "cgroup", Some(controller)) else {
        return Vec::new();
    };
    let path = own_path(own, |names| names.split(',').any(|name| name == controller));
    folders(&root, &path)
}

/// Returns the mount point of a hierarchy of `kind`, for version 1 with the option that names the controller.
fn mount(mounts: &str, kind: &str, option: Option<&str>) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (point, found, options) = (fields.next()?, fields.next()?, fields.next()?);
        let is_wanted = option.is_none_or(|wanted| options.split(',').any(|name| name == wanted));
        (found == kind && is_wanted).then(|| PathBuf::from(point))
    })
}

fn own_path(own: &str, is_wanted: impl Fn(&str) -> bool) -> PathBuf {
    let path = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        is_wanted(controllers).then_some(path)
    });
    PathBuf::from(path.unwrap_or("/"))
}

/// Returns the folder of `path` below `root`, and those above it up to `root`.
fn folders(root: &Path, path: &Path) -> Vec<PathBuf> {
    path.ancestors()
        .map(|path| root.join(path.strip_prefix("/").unwrap_or(path)))
        .filter(|folder| folder.is_dir())
        .collect()
}

/// Returns `true` if groups in `folder` can limit memory and the number of processes.
fn controls(folder: &Path) -> bool {
    let controllers = fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
    ["memory", "pids"]
        .iter()
        .all(|wanted| controllers.split_whitespace().any(|name| name == *wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
        cgroup /sys/fs/cgroup/pids cgroup rw,relatime,pids 0 0\n\
        cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n";

    #[test]
    fn mounts_are_found_by_controller() {
        let memory = mount(MOUNTS, "cgroup", Some("memory"));
        assert_eq!(memory, Some(PathBuf::from("/sys/fs/cgroup/memory")));
        assert_eq!(mount(MOUNTS, "cgroup", Some("cpu")), None);
        let unified = mount(MOUNTS, "cgroup2", None);
        assert_eq!(unified, Some(PathBuf::from("/sys/fs/cgroup/unified")));
    }

    #[test]
    fn own_group_is_read_for_each_version() {
        let own = "8:pids:/a\n4:memory,hugetlb:/b/c\n0::/d\n";
        assert_eq!(
            own_path(own, |names| names.contains("memory")),
            PathBuf::from("/b/c")
        );
        assert_eq!(own_path(own, str::is_empty), PathBuf::from("/d"));
    }

    #[test]
    fn owner_is_read_from_a_name() {
        assert_eq!(owner("tool-sandbox-12-3"), Some("12"));
        assert_eq!(owner("other-12-3"), None);
    }
}
