//! Measurements of the search over tools and of the semantic cache.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::support::process::{cargo, run};
use crate::support::repository::Repository;

/// Files that a folder of tools and queries has.
const DATA: [&str; 2] = ["tools.jsonl", "queries.jsonl"];

/// Measures search on a folder with `tools.jsonl` and `queries.jsonl`: nDCG@10 and recall@10 of each source, latency, build
/// time and size. With a folder of a model, also measures search with vectors. The measurements are examples of `tool-search`
/// and `tool-embed`, since only an optimized build is worth measuring.
///
/// # Errors
/// Returns an error if a folder lacks a file, or if a measurement fails.
pub fn search_eval(repository: &Repository, data: &Path, model: Option<&Path>) -> Result<()> {
    for name in DATA {
        let file = data.join(name);
        ensure!(
            file.is_file(),
            "there is no `{}`: name the folder with `--data`",
            file.display()
        );
    }
    let data = data.canonicalize()?;
    evaluate(repository, ("tool-search", "evaluate"), &[&data])?;
    let Some(model) = model else {
        return Ok(());
    };
    evaluate(repository, ("tool-embed", "evaluate"), &[&data, &found(model)?])
}

/// Measures the semantic cache with the model of a folder, on a file of requests with paraphrases and near misses.
///
/// # Errors
/// Returns an error if the file or the folder does not exist, or if the measurement fails.
pub fn cache_eval(repository: &Repository, data: &Path, model: &Path) -> Result<()> {
    let data = found(&repository.root().join(data))?;
    evaluate(
        repository,
        ("tool-embed", "semantic_cache"),
        &[&data, &found(model)?],
    )
}

fn found(path: &Path) -> Result<PathBuf> {
    path.canonicalize()
        .with_context(|| format!("there is no `{}`", path.display()))
}

fn evaluate(repository: &Repository, (package, example): (&str, &str), paths: &[&Path]) -> Result<()> {
    run(cargo(repository.root())
        .args([
            "run",
            "--release",
            "--quiet",
            "--package",
            package,
            "--example",
            example,
            "--",
        ])
        .args(paths))
}
