//! The benchmarks that are built with criterion.

use std::path::Path;

use anyhow::{Result, bail};

use crate::console::say;
use crate::members::Members;
use crate::process::{cargo, run};
use crate::repository::Repository;

/// The programs that the whole-process benchmark measures.
const MEASURED: [&[&str]; 2] = [
    &["--package", "toolplane-cli", "--bin", "toolplane"],
    &["--package", "mcp-server", "--example", "echo"],
];

/// Runs every benchmark of the workspace, or those whose file or inner name contains `filter`.
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
    let benches: Vec<_> = benches.collect();
    // A filter that names a file chooses it; any other one is criterion's.
    let named = filter.filter(|filter| benches.iter().any(|(_, bench)| bench == filter));
    for (package, bench) in benches
        .iter()
        .filter(|(_, bench)| named.is_none_or(|named| named == *bench))
    {
        say(format_args!("bench: `{bench}` of `{package}`"));
        if *bench == "gateway" {
            for program in MEASURED {
                run(cargo(repository.root())
                    .args(["build", "--release"])
                    .args(program))?;
            }
        }
        let inner = filter.filter(|_| named.is_none());
        run(cargo(repository.root())
            .args(["bench", "--package", package, "--bench", bench])
            .args(inner.map(|filter| ["--", filter]).iter().flatten()))?;
        n_benches += 1;
    }
    say(format_args!("bench: {n_benches} ran"));
    Ok(())
}
