//! Levels of isolation, and what each enforces.

use std::fmt;

use serde::Serialize;

/// Strength of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SandboxLevel {
    /// Namespaces by bubblewrap, a seccomp filter, and a cgroup or rlimits.
    Bwrap,
    /// Landlock, a seccomp filter and rlimits, without namespaces.
    Landlock,
    /// No isolation: limits of time and size alone. It is never chosen by [`Sandbox::detect`](crate::Sandbox::detect).
    #[serde(rename = "none")]
    Unsandboxed,
}

impl SandboxLevel {
    /// Returns the name that files, metadata and reports use: `bwrap`, `landlock` or `none`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bwrap => "bwrap",
            Self::Landlock => "landlock",
            Self::Unsandboxed => "none",
        }
    }
}

impl fmt::Display for SandboxLevel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Scope in which a limit holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum EnforcementScope {
    /// The process tree as a whole.
    Tree,
    /// Each process separately, so that a tree can use the limit times the number of its processes.
    Process,
    /// All processes of the sandbox's user on this machine together.
    User,
    /// Processes that stay in the process group of the first one.
    Group,
    /// Each file separately.
    File,
    /// Not enforced.
    Unenforced,
}

impl EnforcementScope {
    /// Returns the name that reports use: for example `tree`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Process => "process",
            Self::User => "user",
            Self::Group => "group",
            Self::File => "file",
            Self::Unenforced => "unenforced",
        }
    }
}

/// Scopes in which the limits of a sandbox hold on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SandboxEnforcement {
    /// Level of isolation.
    pub level: SandboxLevel,
    /// Scope of the memory limit.
    pub memory: EnforcementScope,
    /// Scope of the CPU time limit.
    pub cpu: EnforcementScope,
    /// Scope of the limit on processes.
    pub processes: EnforcementScope,
    /// Scope of the limit on disk space.
    pub disk: EnforcementScope,
    /// Scope of the network restriction.
    pub network: EnforcementScope,
    /// Scope of the restriction to the files of the command.
    pub filesystem: EnforcementScope,
    /// Scope of the kill at the deadline.
    pub kill: EnforcementScope,
}
