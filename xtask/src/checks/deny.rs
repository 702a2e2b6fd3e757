//! Checks licences, bans and sources of all dependencies with cargo-deny, as set in `deny.toml`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::support::console::say;
use crate::support::process::{cargo, find, output, run};
use crate::support::repository::Repository;

/// Version of cargo-deny that is installed if it is missing. It decides which settings `deny.toml` may use.
const VERSION: &str = "0.20.2";

/// Checks the dependencies. If this version of cargo-deny is missing, installs it into `target/tools` first.
///
/// # Errors
/// Returns an error if a dependency breaks a rule or cargo-deny cannot be installed.
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
        // Without this variable, cargo builds in a folder that it removes at the end.
        .env_remove("CARGO_TARGET_DIR"))?;
    Ok(own)
}
