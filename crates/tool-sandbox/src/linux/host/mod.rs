//! Processes on the host's own file system: confined by Landlock and a seccomp filter, or not at all.
//!
//! Landlock domains and seccomp filters belong to a thread and are inherited by what it starts. So a thread that lives just
//! for this confines itself, starts the process, and ends.

mod holder;
mod landlock;
mod paths;
mod supervisor;

use std::io;
use std::process::Stdio;
use std::thread;

use close_fds::set_fds_cloexec;
use tokio::process::{Child, ChildStdin, Command};
use tokio::runtime::Handle;

use self::holder::Holder;
use self::paths::WorkFolder;
use self::supervisor::Start;
use super::machine::Machine;
use super::seccomp::{self, Surroundings};
use super::{NOBODY, base_environment, rlimits};
use crate::{EnforcementScope, SandboxChild, SandboxCommand, SandboxEnforcement, SandboxLevel};

/// Waits for a line on the standard input, which is read byte by byte, then becomes the program.
const GATE: [&str; 4] = ["/bin/sh", "-c", r#"read -r _ && exec "$@""#, "sandbox"];

/// Level without namespaces.
#[derive(Debug)]
pub(super) struct Host {
    is_confined: bool,
}

impl Host {
    /// Returns the level with Landlock and a seccomp filter.
    pub(super) fn confined() -> Self {
        Self { is_confined: true }
    }

    /// Returns the level without isolation.
    pub(super) fn open() -> Self {
        Self { is_confined: false }
    }

    pub(super) fn enforcement(&self, machine: &Machine) -> SandboxEnforcement {
        let confined = if self.is_confined {
            EnforcementScope::Tree
        } else {
            EnforcementScope::Unenforced
        };
        SandboxEnforcement {
            level: self.level(),
            memory: machine.scope(EnforcementScope::Process),
            cpu: EnforcementScope::Process,
            processes: machine.scope(EnforcementScope::User),
            disk: EnforcementScope::File,
            network: confined,
            filesystem: confined,
            kill: if self.is_confined {
                EnforcementScope::Tree
            } else {
                EnforcementScope::Group
            },
        }
    }

    fn level(&self) -> SandboxLevel {
        if self.is_confined {
            SandboxLevel::Landlock
        } else {
            SandboxLevel::Unsandboxed
        }
    }

    /// Starts a command.
    pub(super) fn spawn(&self, command: SandboxCommand, machine: &Machine) -> io::Result<SandboxChild> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let user = (self.is_confined && machine.is_root).then_some(NOBODY);
        let group = machine.group(&command.limits)?;
        let work = WorkFolder::create(&command, user)?;
        let is_counted = group.is_some();
        let processes = if is_counted {
            None
        } else {
            Some(paths::processes_of(user)? + u64::from(command.limits.processes))
        };
        let wrapper = rlimits::arguments(machine.prlimit(), &command.limits, processes, is_counted);
        let mut process = wrapped(&command, &work, wrapper);
        // Nothing in this process may expect that a child inherits a descriptor, as at the other levels.
        set_fds_cloexec(3, &[]);
        let holder = Holder::start()?;
        process.process_group(holder.group());
        if let Some(user) = user {
            process.uid(user).gid(user);
        }
        let mut child = if self.is_confined {
            let rules = landlock::Rules::new(&command, &work);
            start_confined(process, rules, holder.id(), runtime.clone())?
        } else {
            process.spawn()?
        };
        let (sandboxed, supervision) = SandboxChild::new(&mut child, self.level());
        if let (Some(group), Some(id)) = (&group, child.id()) {
            group.add(id)?;
        }
        open_gate(sandboxed.stdin.as_ref())?;
        let start = Start {
            child,
            holder,
            group,
            work,
            collect: command.collect,
        };
        runtime.spawn(supervisor::supervise(start, supervision));
        Ok(sandboxed)
    }
}

/// Returns the command line that waits at the gate and then runs the program.
fn wrapped(command: &SandboxCommand, work: &WorkFolder, wrapper: Vec<String>) -> Command {
    let mut process = Command::new(GATE[0]);
    process
        .args(&GATE[1..])
        .args(wrapper)
        .arg(work.translate(&command.program.display().to_string()))
        .args(command.args.iter().map(|arg| work.translate(arg)))
        .env_clear()
        .envs(base_environment(&work.job_text(), &work.temporary_text()))
        .envs(
            command
                .env
                .iter()
                .map(|(name, value)| (name, work.translate_list(value))),
        )
        .current_dir(work.translate(&command.directory.display().to_string()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    process
}

/// Starts a process from a thread that confines itself first.
fn start_confined(
    mut process: Command,
    rules: landlock::Rules,
    group: u32,
    runtime: Handle,
) -> io::Result<Child> {
    let filter = seccomp::filter(Surroundings::ProcessGroup(group)).map_err(io::Error::other)?;
    let start = move || {
        let _guard = runtime.enter();
        rules.apply()?;
        seccompiler::apply_filter(&filter).map_err(io::Error::other)?;
        process.spawn()
    };
    thread::Builder::new()
        .name("sandbox-confined".to_owned())
        .spawn(start)?
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("the thread that starts the process failed")))
}

/// Lets the process pass its gate. The pipe is empty, so that this does not block.
fn open_gate(stdin: Option<&ChildStdin>) -> io::Result<()> {
    let stdin = stdin.ok_or(io::ErrorKind::BrokenPipe)?;
    rustix::io::write(stdin, b"\n")?;
    Ok(())
}
