//! The benchmarks that are built with criterion.

use std::path::Path;

use anyhow::{Result, bail};

use crate::console::say;
use crate::members::Members;
use crate::process::{cargo, run};
use crate::repository::Repository;

/// Runs every benchmark of the workspace, or those whose name contains `filter`.
///
/// # Errors
/// When a benchmark fails, or a harness is named that is no folder.
pub fn bench(repository: &Repository, filter: Option<&str>, harness: Option<&Path>) -> Result<()> {
    if let Some(folder) = harness.filter(|folder| !folder.is_dir()) {
        bail!("the harness `{}` is no folder", folder.display());
    }
    let members = Members::load(repository.root())?;
    let benches = members.packages.iter().flat_map(|package| {
        package
            .targets_of("bench")
            .map(|bench| (package.name.as_str(), bench))
    });
    let mut n_benches = 0;
    for (package, bench) in benches {
        say(format_args!("bench: `{bench}` of `{package}`"));
        run(cargo(repository.root())
            .args(["bench", "--package", package, "--bench", bench])
            .args(filter.map(|filter| ["--", filter]).iter().flatten()))?;
        n_benches += 1;
    }
    say(format_args!("bench: {n_benches} ran"));
    Ok(())
}
