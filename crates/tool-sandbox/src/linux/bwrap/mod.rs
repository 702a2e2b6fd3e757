//! Namespaces by bubblewrap.

mod options;
mod prelude;
mod staging;
mod supervisor;

use std::io;
use std::path::PathBuf;
use std::process::Stdio;

use close_fds::set_fds_cloexec;
use command_fds::CommandFdExt;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;

use self::options::Invocation;
use self::staging::StagedPath;
use self::supervisor::Start;
use super::machine::Machine;
use super::{NOBODY, rlimits, spawner};
use crate::network::Proxy;
use crate::{EnforcementScope, SandboxChild, SandboxCommand, SandboxEnforcement, SandboxLevel};

/// Processes that bubblewrap adds to a tree: the first one of its namespace.
const OWN_PROCESSES: u64 = 1;

/// Level with namespaces.
#[derive(Debug)]
pub(super) struct Bwrap {
    program: PathBuf,
    is_staged: bool,
}

impl Bwrap {
    /// Finds the program, or says what is missing.
    pub(super) fn find(machine: &Machine) -> Result<Self, &'static str> {
        let program = options::program().ok_or("there is no `bwrap`")?;
        Ok(Self {
            program,
            is_staged: machine.is_root && staging::is_available(),
        })
    }

    pub(super) fn enforcement(machine: &Machine) -> SandboxEnforcement {
        SandboxEnforcement {
            level: SandboxLevel::Bwrap,
            memory: machine.scope(EnforcementScope::Process),
            cpu: EnforcementScope::Process,
            processes: EnforcementScope::Tree,
            disk: EnforcementScope::Tree,
            network: EnforcementScope::Tree,
            filesystem: EnforcementScope::Tree,
            kill: EnforcementScope::Tree,
        }
    }

    /// Starts a command.
    pub(super) fn spawn(
        &self,
        command: SandboxCommand,
        proxy: Option<Proxy>,
        machine: &Machine,
    ) -> io::Result<SandboxChild> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let group = machine.group(&command.limits)?;
        let processes = u64::from(command.limits.processes) + OWN_PROCESSES;
        let wrapper = rlimits::arguments(
            machine.prlimit(),
            &command.limits,
            Some(processes),
            group.is_some(),
        );
        let Invocation {
            arguments,
            inherited,
            info,
            gate,
            staged,
            mark,
            prelude,
        } = options::invocation(&command, wrapper, self.is_staged)?;
        let mut process = Command::new(&self.program);
        process
            .args(arguments)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .preserved_fds(inherited);
        if machine.is_root {
            process.uid(NOBODY).gid(NOBODY);
        }
        let (mut child, staged) = start(process, staged, runtime.clone())?;
        let (sandboxed, supervision) = SandboxChild::new(&mut child, SandboxLevel::Bwrap);
        let start = Start {
            child,
            info,
            gate,
            mark,
            prelude: prelude.zip(proxy),
            group,
            staged,
            collect: command.collect,
        };
        runtime.spawn(supervisor::supervise(start, supervision));
        Ok(sandboxed)
    }
}

/// Starts a process that inherits no descriptor but those that it names.
///
/// Rust's own descriptors are closed on exec. Those of other libraries, and those that this process inherited itself, are
/// marked here: nothing in this process may expect that a child inherits them.
fn start(
    mut process: Command,
    staged: Vec<StagedPath>,
    runtime: Handle,
) -> io::Result<(Child, Vec<StagedPath>)> {
    spawner::run(move || {
        let _guard = runtime.enter();
        staged.iter().try_for_each(StagedPath::mount)?;
        set_fds_cloexec(3, &[]);
        Ok((process.spawn()?, staged))
    })?
}
