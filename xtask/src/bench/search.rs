//! Measurement of the search over tools.

use std::path::Path;

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
    evaluate(repository, "tool-search", &[&data])?;
    let Some(model) = model else {
        return Ok(());
    };
    let model = model
        .canonicalize()
        .with_context(|| format!("there is no `{}`", model.display()))?;
    evaluate(repository, "tool-embed", &[&data, &model])
}

fn evaluate(repository: &Repository, package: &str, folders: &[&Path]) -> Result<()> {
    run(cargo(repository.root())
        .args([
            "run",
            "--release",
            "--quiet",
            "--package",
            package,
            "--example",
            "evaluate",
            "--",
        ])
        .args(folders))
}
