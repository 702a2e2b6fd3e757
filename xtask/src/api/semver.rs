//! Comparison of two descriptions of an API by cargo-semver-checks.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::description::ApiDescription;
use crate::support::repository::Repository;
use crate::support::tools::CargoTool;

/// The version must read the format of rustdoc of our Rust version.
const CARGO_SEMVER_CHECKS: CargoTool = CargoTool {
    name: "cargo-semver-checks",
    version: "0.51.0",
    ask_version: &["semver-checks", "--version"],
};

/// Finds the breaking changes between two states of all libraries: a report for each library that has some.
pub(super) fn breaks(
    repository: &Repository,
    before: &[ApiDescription],
    after: &[ApiDescription],
) -> Result<Vec<String>> {
    let program = CARGO_SEMVER_CHECKS.program(repository)?;
    let mut reports = Vec::new();
    for old in before {
        let Some(new) = after.iter().find(|new| new.package == old.package) else {
            reports.push(format!(
                "{}: the library is gone, or is no longer published",
                old.package
            ));
            continue;
        };
        if read(&old.file)? != read(&new.file)? {
            reports.extend(compare(&program, old, new)?);
        }
    }
    Ok(reports)
}

fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("failed to read `{}`", file.display()))
}

/// Compares one library as if a minor version followed: anything that needs a major version is breaking.
fn compare(program: &Path, old: &ApiDescription, new: &ApiDescription) -> Result<Option<String>> {
    let output = Command::new(program)
        .args([
            "semver-checks",
            "--release-type",
            "minor",
            "--color",
            "never",
            "--baseline-rustdoc",
        ])
        .arg(&old.file)
        .arg("--current-rustdoc")
        .arg(&new.file)
        .output()
        .context("failed to start cargo-semver-checks")?;
    if output.status.success() {
        return Ok(None);
    }
    let report = String::from_utf8_lossy(&output.stdout);
    if report.trim().is_empty() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "cargo-semver-checks cannot compare `{}`:\n{}",
            old.package,
            said.trim()
        );
    }
    Ok(Some(format!("{}:\n{}", old.package, report.trim())))
}
