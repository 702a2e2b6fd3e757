//! Sandboxes of servers: the description in the settings, the state while a server runs, and the spawner.

#[cfg(feature = "sandbox")]
mod command;
#[cfg(feature = "sandbox")]
mod spawner;
#[cfg(not(feature = "sandbox"))]
#[path = "spawner_unsupported.rs"]
mod spawner;
mod state;

use std::time::Duration;

use tool_core::Template;

pub(crate) use self::state::{SandboxState, add_sandbox};

/// Sandbox of a server's program. It needs the feature `sandbox`: without it, the server is refused.
///
/// The program sees the machine's `/usr`, its working directory and the paths that are named here, and an environment of its
/// own. It ends with all processes that it started when its connection ends, and when this process does.
///
/// # Examples
/// ```
/// use tool_core::Template;
/// use tool_exec_mcp::{ServerSandbox, StdioTarget};
///
/// let mut sandbox = ServerSandbox::default();
/// sandbox.reads.push(Template::parse("/opt/node")?);
/// sandbox.network.push("api.example.com".to_owned());
/// let target = StdioTarget::new(Template::parse("/opt/node/bin/node")?).sandbox(sandbox);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ServerSandbox {
    /// Level of the sandbox.
    pub level: ServerSandboxLevel,
    /// Absolute paths that the program may read, under the same paths.
    pub reads: Vec<Template>,
    /// Absolute paths that the program may read and write.
    pub writes: Vec<Template>,
    /// Hosts that the program may reach: `name`, `*.domain` or an address, each with or without `:port`.
    pub network: Vec<String>,
    /// CPU time of each process; without limit if absent.
    pub cpu_time: Option<Duration>,
    /// Memory, in bytes. If absent, 1 GiB where it is counted for the tree, and 8 GiB of address space for each process
    /// elsewhere, since runtimes reserve more of it than they use.
    pub memory: Option<u64>,
    /// Number of processes and threads; 64 if absent.
    pub processes: Option<u32>,
    /// Number of open files of each process; 1024 if absent.
    pub open_files: Option<u32>,
    /// Size of the work directory, and of `/tmp`, in bytes; 64 MiB if absent.
    pub disk: Option<u64>,
}

/// Level of the sandbox of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ServerSandboxLevel {
    /// The strongest level that works on this machine: [`Bwrap`](Self::Bwrap), else [`Landlock`](Self::Landlock), else the
    /// server is refused.
    #[default]
    Strongest,
    /// Namespaces by bubblewrap.
    Bwrap,
    /// Landlock without namespaces.
    Landlock,
    /// No sandbox, by the operator's decision.
    Unsandboxed,
}

impl ServerSandbox {
    /// Returns every text that may contain references.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &Template> {
        self.reads.iter().chain(&self.writes)
    }

    /// Returns `true` if the program is started in a sandbox, or refused.
    #[must_use]
    pub fn is_enforced(&self) -> bool {
        self.level != ServerSandboxLevel::Unsandboxed
    }
}
