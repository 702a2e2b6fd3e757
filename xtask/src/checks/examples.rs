//! Builds the example programs and runs those that need no external service.

use anyhow::{Result, bail};

use crate::support::console::say;
use crate::support::members::{Package, WorkspaceMembers};
use crate::support::process::{cargo, run};
use crate::support::repository::Repository;

/// Builds every example and runs those that their package names in `package.metadata.toolplane.run`.
pub(crate) fn examples(repository: &Repository) -> Result<()> {
    run(cargo(repository.root()).args(["build", "--quiet", "--workspace", "--examples"]))?;
    for package in WorkspaceMembers::load(repository.root())?.packages {
        for name in package.runnable() {
            say(format_args!("examples: running `{name}` of `{}`", package.name));
            run(cargo(repository.root()).args([
                "run",
                "--quiet",
                "--package",
                &package.name,
                target_option(&package, name)?,
                name,
            ]))?;
        }
    }
    Ok(())
}

fn target_option(package: &Package, name: &str) -> Result<&'static str> {
    if package.targets_of("example").any(|target| target == name) {
        Ok("--example")
    } else if package.targets_of("bin").any(|target| target == name) {
        Ok("--bin")
    } else {
        bail!(
            "`{}` says that `{name}` is run, but has no such example or program",
            package.name
        )
    }
}
