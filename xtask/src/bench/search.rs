//! Measurement of the search over tools.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::support::process::{cargo, run};
use crate::support::repository::Repository;

/// Measures search on a folder with `tools.jsonl` and `queries.jsonl`: nDCG@10 and recall@10 of each source, latency, build
/// time and size. The measurement is an example of `tool-search`, since only an optimized build is worth measuring.
///
/// # Errors
/// Returns an error if the folder lacks a file, or if the measurement fails.
pub fn search_eval(repository: &Repository, data: &Path) -> Result<()> {
    for name in ["tools.jsonl", "queries.jsonl"] {
        let file = data.join(name);
        ensure!(
            file.is_file(),
            "there is no `{}`: name the folder with `--data`",
            file.display()
        );
    }
    run(cargo(repository.root())
        .args([
            "run",
            "--release",
            "--quiet",
            "--package",
            "tool-search",
            "--example",
            "evaluate",
            "--",
        ])
        .arg(data.canonicalize()?))
}
