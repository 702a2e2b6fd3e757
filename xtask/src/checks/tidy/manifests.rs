//! Rules for the manifest of every crate, and for the pages that must list crates and decisions.

use std::path::Path;

use crate::support::console::Violation;
use crate::support::members::{Package, WorkspaceMembers};
use crate::support::repository::Repository;

pub(super) fn check(repository: &Repository, members: &WorkspaceMembers) -> Vec<Violation> {
    let mut problems: Vec<_> = members
        .packages
        .iter()
        .flat_map(|package| check_package(repository, members, package))
        .collect();
    problems.extend(unlisted_crates(repository, members));
    problems.extend(unlisted_decisions(repository));
    problems
}

fn check_package(repository: &Repository, members: &WorkspaceMembers, package: &Package) -> Vec<Violation> {
    let manifest = members.manifest(package);
    let mut missing = Vec::new();
    if package
        .description
        .as_ref()
        .is_none_or(|description| description.trim().is_empty())
    {
        missing.push("no `description`");
    }
    if package.layer().is_none() {
        missing.push("no `layer` in `[package.metadata.toolplane]`");
    }
    if !repository
        .text(&manifest)
        .is_some_and(|text| takes_workspace_lints(&text))
    {
        missing.push("does not take the lints of the workspace: `[lints]`, `workspace = true`");
    }
    missing
        .into_iter()
        .map(|message| Violation::in_file(&manifest, message))
        .collect()
}

fn takes_workspace_lints(manifest: &str) -> bool {
    let mut lines = manifest.lines().map(str::trim);
    lines.any(|line| line == "[lints]") && lines.find(|line| !line.is_empty()) == Some("workspace = true")
}

/// Finds the crates that are missing from the map of the crates.
fn unlisted_crates(repository: &Repository, members: &WorkspaceMembers) -> Vec<Violation> {
    let map = Path::new("ARCHITECTURE.md");
    let Some(text) = repository.text(map) else {
        return Vec::new();
    };
    members
        .packages
        .iter()
        .filter(|package| members.folder(package).starts_with("crates"))
        .filter(|package| !text.contains(&format!("`{}`", package.name)))
        .map(|package| {
            let message = format!(
                "does not name `{}`; `cargo xtask docs` writes the table",
                package.name
            );
            Violation::in_file(map, message)
        })
        .collect()
}

/// Finds the decisions that are missing from the book's summary.
fn unlisted_decisions(repository: &Repository) -> Vec<Violation> {
    let summary = Path::new("docs/src/SUMMARY.md");
    let Some(text) = repository.text(summary) else {
        return Vec::new();
    };
    repository
        .files()
        .iter()
        .filter(|file| file.starts_with("docs/adr") || file.starts_with("docs/src/adr"))
        .filter_map(|file| file.file_name()?.to_str())
        .filter(|name| name.ends_with(".md") && !text.contains(name))
        .map(|name| Violation::in_file(summary, format!("does not list the decision `{name}`")))
        .collect()
}
