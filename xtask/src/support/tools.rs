//! Programs of cargo that checks use, in the version that they are written for.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::support::console::say;
use crate::support::process::{cargo, find, output, run};
use crate::support::repository::Repository;

/// Program that is installed from the package registry.
pub(crate) struct CargoTool {
    /// Name of the package and of its program.
    pub(crate) name: &'static str,
    /// Version of the package.
    pub(crate) version: &'static str,
    /// Arguments that print the version.
    pub(crate) ask_version: &'static [&'static str],
}

impl CargoTool {
    /// Returns the program if one of this version is on `PATH` or in `target/tools`.
    pub(crate) fn installed(&self, repository: &Repository) -> Option<PathBuf> {
        let own = repository.target().join("tools/bin").join(self.name);
        let is_right = |program: &PathBuf| {
            let version = output(Command::new(program).args(self.ask_version));
            version.is_ok_and(|said| said.trim().ends_with(self.version))
        };
        find(self.name).into_iter().chain([own]).find(is_right)
    }

    /// Returns the program. If no program of this version is found, installs it into `target/tools` first.
    pub(crate) fn program(&self, repository: &Repository) -> Result<PathBuf> {
        if let Some(program) = self.installed(repository) {
            return Ok(program);
        }
        let tools = repository.target().join("tools");
        let own = tools.join("bin").join(self.name);
        say(format_args!(
            "tools: building {} {} into `{}` (minutes, once) ...",
            self.name,
            self.version,
            tools.display()
        ));
        run(cargo(repository.root())
            .args([
                "install",
                self.name,
                "--locked",
                "--quiet",
                "--version",
                self.version,
            ])
            .arg("--root")
            .arg(&tools)
            // The programs run for seconds; their build with all optimizations takes many minutes.
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
            // Without this variable, cargo builds in a folder that it removes at the end.
            .env_remove("CARGO_TARGET_DIR"))?;
        Ok(own)
    }
}
