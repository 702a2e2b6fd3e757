//! Limits of one sandboxed process tree.

use std::time::Duration;

const MIB: u64 = 1024 * 1024;

/// Limits of one sandboxed process tree.
///
/// Which of them hold for the whole tree and which for each process depends on the machine:
/// [`SandboxEnforcement`](crate::SandboxEnforcement) says so.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxLimits {
    /// Time after which [`Sandbox::run`](crate::Sandbox::run) kills the process tree. It does not apply to
    /// [`Sandbox::spawn`](crate::Sandbox::spawn), whose caller decides when to kill.
    pub wall_time: Duration,
    /// CPU time of each process, rounded up to whole seconds.
    pub cpu_time: Duration,
    /// Memory, in bytes.
    pub memory: u64,
    /// Number of processes and threads.
    pub processes: u32,
    /// Number of open files of each process.
    pub open_files: u32,
    /// Size of each writable file system of the sandbox, in bytes: the work directory, `/tmp` and `/dev/shm`.
    pub disk: u64,
    /// Size of the standard output and of the standard error that [`Sandbox::run`](crate::Sandbox::run) keeps, in bytes
    /// each. The process tree is killed when it writes more.
    pub output: u64,
}

impl Default for SandboxLimits {
    fn default() -> Self {
        Self {
            wall_time: Duration::from_secs(30),
            cpu_time: Duration::from_secs(30),
            memory: 512 * MIB,
            processes: 64,
            open_files: 256,
            disk: 64 * MIB,
            output: MIB,
        }
    }
}

impl SandboxLimits {
    /// Sets the time after which a run is killed.
    #[must_use]
    pub fn with_wall_time(mut self, wall_time: Duration) -> Self {
        self.wall_time = wall_time;
        self
    }

    /// Sets the CPU time of each process.
    #[must_use]
    pub fn with_cpu_time(mut self, cpu_time: Duration) -> Self {
        self.cpu_time = cpu_time;
        self
    }

    /// Sets the memory, in bytes.
    #[must_use]
    pub fn with_memory(mut self, memory: u64) -> Self {
        self.memory = memory;
        self
    }

    /// Sets the number of processes and threads.
    #[must_use]
    pub fn with_processes(mut self, processes: u32) -> Self {
        self.processes = processes;
        self
    }

    /// Sets the number of open files of each process.
    #[must_use]
    pub fn with_open_files(mut self, open_files: u32) -> Self {
        self.open_files = open_files;
        self
    }

    /// Sets the size of each writable file system, in bytes.
    #[must_use]
    pub fn with_disk(mut self, disk: u64) -> Self {
        self.disk = disk;
        self
    }

    /// Sets the size of the standard output and of the standard error that a run keeps, in bytes each.
    #[must_use]
    pub fn with_output(mut self, output: u64) -> Self {
        self.output = output;
        self
    }
}
