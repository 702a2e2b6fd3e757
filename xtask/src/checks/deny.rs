//! Checks licences, bans and sources of all dependencies with cargo-deny, as set in `deny.toml`.

use std::process::Command;

use anyhow::Result;

use crate::support::process::run;
use crate::support::repository::Repository;
use crate::support::tools::CargoTool;

/// The version decides which settings `deny.toml` may use.
const CARGO_DENY: CargoTool = CargoTool {
    name: "cargo-deny",
    version: "0.20.2",
    ask_version: &["--version"],
};

/// Checks the dependencies. If this version of cargo-deny is missing, installs it into `target/tools` first.
///
/// # Errors
/// Returns an error if a dependency breaks a rule or cargo-deny cannot be installed.
pub fn deny(repository: &Repository, advisories: bool) -> Result<()> {
    let mut command = Command::new(CARGO_DENY.program(repository)?);
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
