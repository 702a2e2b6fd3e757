//! Simulations of the whole stack: as many seeds as one has time for.

use anyhow::Result;

use crate::support::process::{cargo, run};
use crate::support::repository::Repository;

/// With more seeds than this, building with optimizations takes less time than it saves.
const FEW: u64 = 1_000;

/// Which simulations are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimOptions {
    /// How many seeds.
    pub seeds: u64,
    /// The first seed.
    pub from: u64,
    /// Whether the histories of seeds that go wrong are shown.
    pub history: bool,
}

/// Runs simulations, and says which seeds went wrong.
///
/// # Errors
/// When one did.
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
