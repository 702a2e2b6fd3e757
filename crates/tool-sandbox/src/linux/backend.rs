//! Level of a sandbox on this machine, and the start of its processes.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;

use close_fds::set_fds_cloexec;
use command_fds::CommandFdExt;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::bwrap::{self, Invocation, Machine};
use super::supervisor::{self, Start};
use super::{rlimits, spawner};
use crate::{
    EnforcementScope, NetworkAccess, SandboxChild, SandboxCommand, SandboxEnforcement, SandboxError,
    SandboxLevel,
};

/// Programs and scopes of a level.
#[derive(Debug)]
pub(crate) struct Backend {
    bwrap: PathBuf,
    prlimit: PathBuf,
    enforcement: SandboxEnforcement,
}

impl Backend {
    /// Finds what `level` needs.
    pub(crate) fn new(level: SandboxLevel) -> Result<Self, SandboxError> {
        if level != SandboxLevel::Bwrap {
            return Err(SandboxError::unavailable(
                level,
                "the level is not part of this build",
                hint(level),
            ));
        }
        let bwrap = bwrap::program()
            .ok_or_else(|| SandboxError::unavailable(level, "there is no `bwrap`", hint(level)))?;
        let prlimit = rlimits::program()
            .ok_or_else(|| SandboxError::unavailable(level, "there is no `prlimit`", "install util-linux"))?;
        Ok(Self {
            bwrap,
            prlimit,
            enforcement: SandboxEnforcement {
                level,
                memory: EnforcementScope::Process,
                cpu: EnforcementScope::Process,
                processes: EnforcementScope::Tree,
                disk: EnforcementScope::Tree,
                network: EnforcementScope::Tree,
                filesystem: EnforcementScope::Tree,
                kill: EnforcementScope::Tree,
            },
        })
    }

    pub(crate) fn enforcement(&self) -> &SandboxEnforcement {
        &self.enforcement
    }

    /// Returns what to install or to allow if the level does not work.
    pub(crate) fn hint(&self) -> &'static str {
        hint(self.enforcement.level)
    }

    /// Starts a command.
    pub(crate) fn spawn(&self, command: SandboxCommand) -> Result<SandboxChild, SandboxError> {
        if command.network != NetworkAccess::Off {
            return Err(SandboxError::refused(
                "network access",
                "no level of this machine offers it",
            ));
        }
        let failed = |error: io::Error| SandboxError::spawn("bubblewrap does not start", error);
        let machine = Machine {
            prlimit: &self.prlimit,
            is_memory_counted: false,
        };
        let invocation = bwrap::invocation(&command, &machine).map_err(failed)?;
        let runtime = Handle::try_current().map_err(|error| failed(io::Error::other(error)))?;
        let Invocation {
            arguments,
            inherited,
            info,
            gate,
        } = invocation;
        let mut process = Command::new(&self.bwrap);
        process
            .args(arguments)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .preserved_fds(inherited);
        let mut child = start(process, runtime.clone()).map_err(failed)?;
        let (kill, killed) = oneshot::channel();
        let (report, end) = oneshot::channel();
        let sandboxed = SandboxChild {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            level: self.enforcement.level,
            kill: Some(kill),
            end,
            exit: None,
        };
        runtime.spawn(supervisor::supervise(Start { child, info, gate }, killed, report));
        Ok(sandboxed)
    }
}

/// Starts a process that inherits no descriptor but those that it names.
///
/// Rust's own descriptors are closed on exec. Those of other libraries, and those that this process inherited itself, are
/// marked here: nothing in this process may expect that a child inherits them.
fn start(mut process: Command, runtime: Handle) -> io::Result<Child> {
    spawner::run(move || {
        let _guard = runtime.enter();
        set_fds_cloexec(3, &[]);
        process.spawn()
    })?
}

fn hint(level: SandboxLevel) -> &'static str {
    match level {
        SandboxLevel::Bwrap => {
            "install the package `bubblewrap` and allow user namespaces (`sysctl kernel.unprivileged_userns_clone`, \
             `sysctl user.max_user_namespaces`)"
        }
        SandboxLevel::Landlock => {
            "use a kernel of at least Linux 6.12 with Landlock among its security modules"
        }
        SandboxLevel::Unsandboxed => "install the package `util-linux`",
    }
}
