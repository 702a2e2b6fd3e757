//! Limits of each process, set by prlimit(1) of util-linux.
//!
//! It runs inside the sandbox, after its user namespace exists: the kernel then counts the processes of this sandbox alone.
//! Setting the limits from outside needs `CAP_SYS_RESOURCE` for a process of another user, which containers lack.

use std::path::{Path, PathBuf};

use crate::SandboxLimits;

/// Places of prlimit(1). Each is below a directory that every sandbox sees.
const PROGRAMS: [&str; 2] = ["/usr/bin/prlimit", "/bin/prlimit"];

/// Returns the path of prlimit(1).
pub(super) fn program() -> Option<PathBuf> {
    PROGRAMS.iter().map(PathBuf::from).find(|path| path.is_file())
}

/// Returns the command line of `prlimit` up to the program that it starts.
///
/// `processes` is the number that the user of the sandbox may have. `is_memory_counted` says that a cgroup counts the memory
/// of the tree: address space is then not limited, since runtimes reserve more of it than they use.
pub(super) fn arguments(
    prlimit: &Path,
    limits: &SandboxLimits,
    processes: Option<u64>,
    is_memory_counted: bool,
) -> Vec<String> {
    let cpu = seconds_up(limits.cpu_time.as_millis());
    let mut arguments = vec![
        prlimit.display().to_string(),
        // The signal at the soft limit can be caught; the one at the hard limit cannot.
        format!("--cpu={cpu}:{}", cpu.saturating_add(1)),
        format!("--nofile={}", limits.open_files),
        format!("--fsize={}", limits.disk),
        "--core=0".to_owned(),
        "--msgqueue=0".to_owned(),
    ];
    arguments.extend(processes.map(|processes| format!("--nproc={processes}")));
    if !is_memory_counted {
        arguments.push(format!("--as={}", limits.memory));
    }
    arguments.push("--".to_owned());
    arguments
}

fn seconds_up(millis: u128) -> u64 {
    u64::try_from(millis.div_ceil(1000))
        .unwrap_or(u64::MAX)
        .clamp(1, u64::from(u32::MAX))
}
