//! Runs the benchmarks of the members, and the separate benchmark of the MCP client.

mod cold;
mod search;

use std::path::Path;

use anyhow::{Result, bail};

use crate::support::console::say;
use crate::support::members::WorkspaceMembers;
use crate::support::process::{cargo, run};
use crate::support::repository::Repository;

pub use search::{cache_eval, search_eval};

/// Programs that the whole-process benchmarks measure.
const MEASURED: [&[&str]; 2] = [
    &["--package", "toolplane-cli", "--bin", "toolplane"],
    &["--package", "mcp-server", "--example", "echo"],
];

/// Benchmarks that measure those programs.
const WHOLE_PROCESS: [&str; 2] = ["gateway", "own_connections"];

/// Benchmark that compares our MCP client with others. It is not a member of the workspace, because it needs a peer's
/// crates.
const CLIENT: &str = "client";
const CLIENT_FOLDER: &str = "benches";

/// Measurement of cold builds. It runs only if it is named, since it takes minutes.
const COLD: &str = "cold";

/// Runs every benchmark, or those whose file name or inner name contains `filter`.
///
/// # Errors
/// Returns an error if a benchmark fails, or if the named harness is not a folder.
pub fn bench(repository: &Repository, filter: Option<&str>, harness: Option<&Path>) -> Result<()> {
    if let Some(folder) = harness.filter(|folder| !folder.is_dir()) {
        bail!("the harness `{}` is no folder", folder.display());
    }
    match filter {
        Some(CLIENT) => return client(repository),
        Some(COLD) => return cold::cold(repository),
        _ => {}
    }
    let members = WorkspaceMembers::load(repository.root())?;
    let benches = members.packages.iter().flat_map(|package| {
        package
            .targets_of("bench")
            .map(|bench| (package.name.as_str(), bench))
    });
    let mut n_benches = 0;
    let benches: Vec<_> = benches.collect();
    // A filter that names a file selects it. Any other filter is passed to criterion.
    let named = filter.filter(|filter| benches.iter().any(|(_, bench)| bench == filter));
    for (package, bench) in benches
        .iter()
        .filter(|(_, bench)| named.is_none_or(|named| named == *bench))
    {
        say(format_args!("bench: `{bench}` of `{package}`"));
        if WHOLE_PROCESS.contains(bench) {
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
    if filter.is_none() {
        client(repository)?;
        n_benches += 1;
    }
    say(format_args!("bench: {n_benches} ran"));
    Ok(())
}

fn client(repository: &Repository) -> Result<()> {
    say(format_args!(
        "bench: `{CLIENT}`, ours beside a bare client and rmcp"
    ));
    let folder = repository.root().join(CLIENT_FOLDER);
    // It has its own lock file, so it is built separately.
    run(cargo(&folder)
        .args(["run", "--release", "--locked", "--target-dir"])
        .arg(repository.target().join(CLIENT_FOLDER)))
}
