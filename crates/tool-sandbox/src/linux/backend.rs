//! Level of a sandbox on this machine.

use super::bwrap::Bwrap;
use super::host::Host;
use super::machine::Machine;
use crate::network::{HostRules, Proxy};
use crate::{NetworkAccess, SandboxChild, SandboxCommand, SandboxEnforcement, SandboxError, SandboxLevel};

/// Level of a sandbox on this machine.
#[derive(Debug)]
pub(crate) struct Backend {
    machine: Machine,
    isolation: Isolation,
    enforcement: SandboxEnforcement,
}

#[derive(Debug)]
enum Isolation {
    Bwrap(Bwrap),
    Host(Host),
}

impl Backend {
    /// Finds what `level` needs.
    pub(crate) fn new(level: SandboxLevel) -> Result<Self, SandboxError> {
        let missing = |reason: &str| SandboxError::unavailable(level, reason, hint(level));
        let machine = Machine::find().map_err(missing)?;
        let isolation = match level {
            SandboxLevel::Bwrap => Isolation::Bwrap(Bwrap::find(&machine).map_err(missing)?),
            SandboxLevel::Landlock => Isolation::Host(Host::confined()),
            SandboxLevel::Unsandboxed => Isolation::Host(Host::open()),
        };
        let enforcement = match &isolation {
            Isolation::Bwrap(_) => Bwrap::enforcement(&machine),
            Isolation::Host(host) => host.enforcement(&machine),
        };
        Ok(Self {
            machine,
            isolation,
            enforcement,
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
        let proxy = match &command.network {
            NetworkAccess::Off => None,
            NetworkAccess::Hosts(hosts) => Some(Proxy::new(HostRules::new(hosts)?, command.observer.clone())),
        };
        let started = match &self.isolation {
            Isolation::Bwrap(bwrap) => bwrap.spawn(command, proxy, &self.machine),
            Isolation::Host(_) if proxy.is_some() => {
                return Err(SandboxError::refused(
                    "access to hosts",
                    format!("level `{}` has no network to filter", self.enforcement.level),
                ));
            }
            Isolation::Host(host) => host.spawn(command, &self.machine),
        };
        started.map_err(|error| SandboxError::spawn("its process does not start", error))
    }
}

fn hint(level: SandboxLevel) -> &'static str {
    match level {
        SandboxLevel::Bwrap => {
            "install the packages `bubblewrap` and `util-linux`, and allow user namespaces to users without rights \
             (`sysctl user.max_user_namespaces`, on Debian `kernel.unprivileged_userns_clone`, on Ubuntu \
             `kernel.apparmor_restrict_unprivileged_userns`)"
        }
        SandboxLevel::Landlock => {
            "install the package `util-linux`, and use Linux 6.12 or newer with `landlock` in the list of \
             `/sys/kernel/security/lsm`"
        }
        SandboxLevel::Unsandboxed => "install the package `util-linux`",
    }
}
