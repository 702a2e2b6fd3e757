//! Builds the example programs, runs those that need no external service, and compares some of them with the programs
//! of peers.

pub(crate) mod comparison;
mod lines;
mod runs;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::build::program::{build, executable};
use crate::support::console::say;
use crate::support::members::{Package, WorkspaceMembers};
use crate::support::process::run;
use crate::support::repository::Repository;

/// Builds every example, runs those that their package names in `package.metadata.toolplane.run`, and then those that are
/// compared with peers.
///
/// # Errors
/// Returns an error if a program does not build, fails, writes something else than expected, or is too long.
pub fn examples(repository: &Repository) -> Result<()> {
    let built = build(repository, &["--workspace", "--examples"])?;
    for package in WorkspaceMembers::load(repository.root())?.packages {
        for name in package.runnable() {
            say(format_args!("examples: running `{name}` of `{}`", package.name));
            let program = program(repository, &package, name, &built)?;
            run(Command::new(program).current_dir(repository.root()))?;
        }
    }
    runs::compare(repository, &built)
}

/// Returns the path of an example, or of a program that only its package builds.
fn program(repository: &Repository, package: &Package, name: &str, built: &str) -> Result<PathBuf> {
    if package.targets_of("example").any(|target| target == name) {
        executable(built, name)
    } else if package.targets_of("bin").any(|target| target == name) {
        let built = build(repository, &["--package", &package.name, "--bin", name])?;
        executable(&built, name)
    } else {
        bail!(
            "`{}` says that `{name}` is run, but has no such example or program",
            package.name
        )
    }
}
