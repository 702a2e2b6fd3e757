//! Runs simulations of the whole stack, with any number of seeds.

use anyhow::Result;

use crate::support::process::{cargo, run};
use crate::support::repository::Repository;

/// Largest number of seeds that is run without optimizations. Above it, an optimized build takes less time than it
/// saves.
const FEW: u64 = 1_000;

/// Selection of the simulations to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimOptions {
    /// Number of seeds.
    pub seeds: u64,
    /// First seed.
    pub from: u64,
    /// `true` if the histories of failing seeds are shown.
    pub history: bool,
}

/// Runs simulations and reports the seeds that failed.
///
/// # Errors
/// Returns an error if a seed failed.
pub fn sim(repository: &Repository, options: SimOptions) -> Result<()> {
    let mut command = cargo(repository.root());
    command.args(["run", "--quiet", "--package", "toolplane-sim"]);
    command.args((options.seeds > FEW).then_some("--release"));
    command.args([
        "--",
        "--seeds",
        &options.seeds.to_string(),
        "--from",
        &options.from.to_string(),
    ]);
    command.args(options.history.then_some("--history"));
    run(&mut command)
}
