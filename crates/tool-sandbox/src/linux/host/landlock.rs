//! Landlock rules of a command.

use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, Scope, path_beneath_rules,
};

use super::paths::WorkFolder;
use crate::SandboxCommand;
use crate::linux::ETC_PATHS;

/// Version whose rights are all handled. It is the first that keeps signals within the sandbox.
const VERSION: ABI = ABI::V6;

/// Directories of programs and libraries.
const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Devices that hold nothing of the host.
const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// Paths that a command may use.
#[derive(Debug)]
pub(super) struct Rules {
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
}

impl Rules {
    pub(super) fn new(command: &SandboxCommand, work: &WorkFolder) -> Self {
        let etc = ETC_PATHS.iter().map(|name| PathBuf::from(format!("/etc/{name}")));
        let mut rules = Self {
            readable: SYSTEM.iter().map(PathBuf::from).chain(etc).collect(),
            writable: DEVICES.iter().map(PathBuf::from).collect(),
        };
        rules.readable.push(work.files().to_path_buf());
        rules
            .writable
            .extend([work.job().to_path_buf(), work.temporary().to_path_buf()]);
        for grant in &command.grants {
            if grant.is_writable {
                rules.writable.push(grant.host.clone());
            } else {
                rules.readable.push(grant.host.clone());
            }
        }
        rules
    }

    /// Confines the calling thread and everything that it starts. TCP is denied as a whole.
    pub(super) fn apply(self) -> io::Result<()> {
        let readable = AccessFs::from_read(VERSION);
        // Devices are opened, never made or controlled.
        let writable =
            AccessFs::from_all(VERSION) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(VERSION))
            .and_then(|rules| rules.handle_access(AccessNet::from_all(VERSION)))
            .and_then(|rules| rules.scope(Scope::from_all(VERSION)))
            .and_then(Ruleset::create)
            .and_then(|rules| rules.add_rules(path_beneath_rules(self.readable, readable)))
            .and_then(|rules| rules.add_rules(path_beneath_rules(self.writable, writable)))
            .and_then(RulesetCreated::restrict_self)
            .map(|_| ())
            .map_err(io::Error::other)
    }
}
