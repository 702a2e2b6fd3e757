//! Tracks descendants of a child that left its process group, such as daemons: by their parents while these live, and
//! by a mark in their environment after that.

use std::{
    collections::{BTreeMap, HashSet},
    ffi::OsString,
    fs,
    hash::{BuildHasher as _, RandomState},
    os::fd::OwnedFd,
    process, thread,
    time::Duration,
};

use parking_lot::Mutex;
use rustix::process::{Pid, PidfdFlags, Signal, getpgid, getpid, pidfd_open, pidfd_send_signal};

use super::command::inherited_mark;

/// Environment variable that all descendants inherit. A client that runs below another one carries the marks of both.
pub(crate) const MARK_VARIABLE: &str = "MCP_CLIENT_TREE";

/// Descendants of a child outside its process group.
#[derive(Debug)]
pub(crate) struct Descendants {
    mark: String,
    leader: Mutex<Option<Process>>,
    /// Handles of the known descendants by process id. A handle refers to one process, even if its id is reused.
    handles: Mutex<BTreeMap<i32, OwnedFd>>,
}

/// Identity of a process: an id may be reused, an id with a start time is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    id: Pid,
    start: u64,
}

/// Maximum number of processes examined to find the descendants of one.
const MAX: usize = 4096;
/// Maximum number of searches for marked processes, since they may start others and need time to end.
const MAX_ROUNDS: usize = 50;
/// Pause between two searches.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

impl Descendants {
    pub(crate) fn new() -> Self {
        let random = || RandomState::new().hash_one(process::id());
        Self {
            mark: format!("{:016x}{:016x}", random(), random()),
            leader: Mutex::default(),
            handles: Mutex::default(),
        }
    }

    /// Value of the mark in the child's environment.
    pub(crate) fn mark_value(&self) -> OsString {
        let mut value = inherited_mark(MARK_VARIABLE).map_or(OsString::new(), |mut outer| {
            outer.push(":");
            outer
        });
        value.push(&self.mark);
        value
    }

    /// Records the child.
    pub(crate) fn set_leader(&self, id: Pid) {
        *self.leader.lock() = Stat::read(id).map(|stat| Process {
            id,
            start: stat.start,
        });
    }

    /// Records the current descendants outside the child's group.
    pub(crate) fn record(&self) {
        let leader = *self.leader.lock();
        if let Some(leader) = leader {
            self.handles.lock().extend(outside_group(leader));
        }
    }

    /// Signals all known descendants outside the child's group. Must be called before the group is signalled:
    /// afterwards the parents that lead to them are gone.
    pub(crate) fn signal(&self, signal: Signal) {
        self.record();
        for process in self.handles.lock().values() {
            // Fails if the process has ended, as intended.
            let _ = pidfd_send_signal(process, signal);
        }
    }

    /// Kills the remaining descendants after the child has ended, and waits briefly until they are gone.
    pub(crate) fn finish(&self) {
        *self.leader.lock() = None;
        self.signal(Signal::KILL);
        self.handles.lock().clear();
        for _ in 0..MAX_ROUNDS {
            if !self.kill_marked() {
                return;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Kills marked processes. Returns `true` if there was any.
    fn kill_marked(&self) -> bool {
        let own = getpid();
        let mut any = false;
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let name = entry.file_name();
            let id = name.to_str().and_then(|name| Pid::from_raw(name.parse().ok()?));
            let Some(id) = id.filter(|id| *id != own && self.has_mark(*id)) else {
                continue;
            };
            // The id may be reused by now: the handle refers to the process that is checked again.
            if let Ok(process) = pidfd_open(id, PidfdFlags::empty())
                && self.has_mark(id)
            {
                any = true;
                let _ = pidfd_send_signal(&process, Signal::KILL);
            }
        }
        any
    }

    fn has_mark(&self, id: Pid) -> bool {
        // Fails for processes of other users, which could not be killed either.
        let Ok(environment) = fs::read(format!("/proc/{}/environ", id.as_raw_nonzero())) else {
            return false;
        };
        environment.split(|byte| *byte == 0).any(|variable| {
            let value = variable.strip_prefix(MARK_VARIABLE.as_bytes());
            let value = value.and_then(|value| value.strip_prefix(b"="));
            value.is_some_and(|value| {
                value
                    .split(|byte| *byte == b':')
                    .any(|mark| mark == self.mark.as_bytes())
            })
        })
    }
}

/// Finds the descendants of a process outside its group.
fn outside_group(leader: Process) -> Vec<(i32, OwnedFd)> {
    let mut found = Vec::new();
    let mut seen = HashSet::from([leader.id]);
    let mut open = vec![leader];
    while let Some(parent) = open.pop() {
        for id in children(parent) {
            if seen.len() > MAX || !seen.insert(id) {
                continue;
            }
            let Ok(process) = pidfd_open(id, PidfdFlags::empty()) else {
                continue;
            };
            // If the id was reused, the handle refers to a process with another parent.
            let Some(stat) = Stat::read(id).filter(|stat| stat.parent == parent.id.as_raw_nonzero().get())
            else {
                continue;
            };
            open.push(Process {
                id,
                start: stat.start,
            });
            if getpgid(Some(id)).is_ok_and(|group| group != leader.id) {
                found.push((id.as_raw_nonzero().get(), process));
            }
        }
    }
    found
}

/// Children of all threads of a process.
fn children(parent: Process) -> Vec<Pid> {
    let folder = format!("/proc/{}/task", parent.id.as_raw_nonzero());
    let tasks = fs::read_dir(folder).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children = lists.flat_map(|list| {
        let ids = list.split_whitespace().filter_map(|id| id.parse().ok());
        ids.filter_map(Pid::from_raw).collect::<Vec<_>>()
    });
    let children = children.collect();
    match Stat::read(parent.id) {
        Some(stat) if stat.start == parent.start => children,
        // The id was reused, so these are the children of another process.
        _ => Vec::new(),
    }
}

struct Stat {
    parent: i32,
    start: u64,
}

impl Stat {
    fn read(id: Pid) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", id.as_raw_nonzero())).ok()?;
        // The process name before the last `)` may contain anything.
        let (_, fields) = stat.rsplit_once(')')?;
        let mut fields = fields.split_whitespace();
        Some(Self {
            parent: fields.nth(1)?.parse().ok()?,
            start: fields.nth(17)?.parse().ok()?,
        })
    }
}
