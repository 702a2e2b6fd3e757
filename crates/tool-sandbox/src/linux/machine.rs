//! Parts of the machine that all levels use.

use std::io;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::cgroup::{Cgroups, TreeGroup};
use super::rlimits;
use crate::{EnforcementScope, SandboxLimits};

/// Parts of the machine that all levels use.
#[derive(Debug)]
pub(super) struct Machine {
    prlimit: PathBuf,
    cgroups: Option<Cgroups>,
    /// `true` if this process is root, so that sandboxed processes change their user.
    pub(super) is_root: bool,
}

impl Machine {
    /// Finds the parts, or says which one is missing.
    pub(super) fn find() -> Result<Self, &'static str> {
        Ok(Self {
            prlimit: rlimits::program().ok_or("there is no `prlimit`, which the package `util-linux` has")?,
            cgroups: Cgroups::find(),
            is_root: geteuid().is_root(),
        })
    }

    /// Creates the group of a tree, if this process can.
    pub(super) fn group(&self, limits: &SandboxLimits) -> io::Result<Option<TreeGroup>> {
        self.cgroups
            .as_ref()
            .map(|cgroups| cgroups.create(limits))
            .transpose()
    }

    /// Returns `whole` if trees have groups, and `otherwise` if they have none.
    pub(super) fn scope(&self, otherwise: EnforcementScope) -> EnforcementScope {
        match self.cgroups {
            Some(_) => EnforcementScope::Tree,
            None => otherwise,
        }
    }

    pub(super) fn prlimit(&self) -> &Path {
        &self.prlimit
    }
}
