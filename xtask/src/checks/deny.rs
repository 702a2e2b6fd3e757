//! Licences, bans and sources of everything that is built: `deny.toml`, checked by cargo-deny.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::support::console::say;
use crate::support::process::{cargo, find, output, run};
use crate::support::repository::Repository;

/// The version that is installed where there is none; it decides what `deny.toml` may say.
const VERSION: &str = "0.20.2";

/// Checks the dependencies; installs cargo-deny into `target/tools` first if the machine has none of this version.
///
/// # Errors
/// When a dependency breaks a rule, or cargo-deny cannot be installed.
pub fn deny(repository: &Repository, advisories: bool) -> Result<()> {
    let program = program(repository)?;
    let mut command = Command::new(program);
    command.current_dir(repository.root()).args([
        "--workspace",
        "--all-features",
        "check",
        "--hide-inclusion-graph",
    ]);
    command
        .args(["bans", "licenses", "sources"])
        .args(advisories.then_some("advisories"));
    run(&mut command)
}

fn program(repository: &Repository) -> Result<PathBuf> {
    let tools = repository.target().join("tools");
    let own = tools.join("bin/cargo-deny");
    let is_right = |program: &PathBuf| {
        output(Command::new(program).arg("--version")).is_ok_and(|said| said.trim().ends_with(VERSION))
    };
    if let Some(program) = find("cargo-deny").into_iter().chain([own.clone()]).find(is_right) {
        return Ok(program);
    }
    say(format_args!(
        "deny: building cargo-deny {VERSION} into `{}` (minutes, once) ...",
        tools.display()
    ));
    run(cargo(repository.root())
        .args([
            "install",
            "cargo-deny",
            "--locked",
            "--quiet",
            "--version",
            VERSION,
            "--root",
        ])
        .arg(&tools)
        // Without it cargo builds in a folder that it removes at the end.
        .env_remove("CARGO_TARGET_DIR"))?;
    Ok(own)
}
