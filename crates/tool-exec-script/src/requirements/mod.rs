//! Packages that Python code requires: locked once, installed from the lock alone.

mod install;
mod lock;
mod resolve;
mod tools;

pub(crate) use self::resolve::resolve;
pub(crate) use self::{install::Environments, lock::LockedRequirements};
pub use self::{resolve::RequirementsError, tools::InstallerVariables};
