//! Third-party crates whose types are part of a public API, compared with the page that lists them.

mod signatures;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result};
use serde::Deserialize;

use self::signatures::Signatures;
use super::description::ApiDescription;
use crate::docs::replace_part;
use crate::support::console::Violation;
use crate::support::members::WorkspaceMembers;
use crate::support::process::{cargo, output};
use crate::support::repository::Repository;

/// Page that lists the crates.
pub(super) const PAGE: &str = "docs/src/reference/third-party-types.md";
/// Part of the page that is written by `accept`.
const PART: &str = "third-party";
/// Number of items that the page names for each crate.
const N_ITEMS: usize = 3;

/// Row of the page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    library: String,
    /// Name of the third-party crate.
    foreign: String,
    /// Paths under which the library re-exports the crate or its types.
    reexports: String,
}

/// Compares the crates in the API with those on the page. Items and versions on the page are examples.
pub(super) fn check(
    repository: &Repository,
    members: &WorkspaceMembers,
    present: &[ApiDescription],
) -> Result<Vec<Violation>> {
    let found: BTreeSet<_> = found(members, present)?.into_keys().collect();
    let text = repository.text(PAGE).unwrap_or_default();
    let listed: BTreeSet<_> = text.lines().filter_map(row).collect();
    let unlisted = found.difference(&listed).map(|row| {
        format!(
            "does not list `{}` of `{}`, re-exported as: {}; keep it out of the API, or run `{}`",
            row.foreign,
            row.library,
            row.reexports,
            super::ACCEPT
        )
    });
    let stale = listed.difference(&found).map(|row| {
        format!(
            "lists `{}` of `{}`, re-exported as: {}; the API has no such row, `{}` writes the table",
            row.foreign,
            row.library,
            row.reexports,
            super::ACCEPT
        )
    });
    Ok(unlisted
        .chain(stale)
        .map(|message| Violation::in_file(PAGE, message))
        .collect())
}

/// Writes the table of the page.
pub(super) fn write(
    repository: &Repository,
    members: &WorkspaceMembers,
    present: &[ApiDescription],
) -> Result<()> {
    let versions = versions(members)?;
    let mut table =
        "| library | third-party crate | re-exported as | shown by |\n|---|---|---|---|\n".to_owned();
    for (row, items) in found(members, present)? {
        let version = versions.get(&row.foreign).map_or("", String::as_str);
        let items: Vec<_> = items
            .iter()
            .take(N_ITEMS)
            .map(|item| format!("`{item}`"))
            .collect();
        table += &format!(
            "| `{}` | `{}` {version} | {} | {} |\n",
            row.library,
            row.foreign,
            row.reexports,
            items.join(", ")
        );
    }
    let text = repository
        .text(PAGE)
        .with_context(|| format!("failed to read `{PAGE}`"))?;
    let fresh =
        replace_part(&text, PART, &table).with_context(|| format!("`{PAGE}` has no part `{PART}`"))?;
    fs::write(repository.root().join(PAGE), fresh).with_context(|| format!("failed to write `{PAGE}`"))
}

/// Finds the rows, each with the items that show the crate.
fn found(members: &WorkspaceMembers, present: &[ApiDescription]) -> Result<BTreeMap<Row, BTreeSet<String>>> {
    let mut rows = BTreeMap::new();
    for described in present {
        let text = fs::read_to_string(&described.file)
            .with_context(|| format!("failed to read `{}`", described.file.display()))?;
        let signatures = Signatures::parse(&text)
            .with_context(|| format!("failed to read the description of `{}`", described.package))?;
        for (foreign, shown) in signatures.foreign_crates() {
            if members
                .packages
                .iter()
                .any(|package| package.crate_name() == foreign)
            {
                continue;
            }
            let reexports: Vec<_> = shown.reexports.iter().map(|path| format!("`{path}`")).collect();
            let row = Row {
                library: described.package.clone(),
                foreign,
                reexports: if reexports.is_empty() {
                    "-".to_owned()
                } else {
                    reexports.join(", ")
                },
            };
            rows.insert(row, shown.items);
        }
    }
    Ok(rows)
}

/// Reads a row such as ``| `mcp-server` | `http` 1 | `http` | `Identify::identify` |``.
fn row(line: &str) -> Option<Row> {
    let mut cells = line.strip_prefix("| `")?.split(" | ");
    let library = cells.next()?.strip_suffix('`')?.to_owned();
    let foreign = cells.next()?.split('`').nth(1)?.to_owned();
    let reexports = cells.next()?.to_owned();
    Some(Row {
        library,
        foreign,
        reexports,
    })
}

#[derive(Deserialize)]
struct Resolved {
    packages: Vec<ResolvedPackage>,
}

#[derive(Deserialize)]
struct ResolvedPackage {
    name: String,
    version: String,
}

/// Returns the newest version of each package in the build, shortened to the part that must not change.
fn versions(members: &WorkspaceMembers) -> Result<BTreeMap<String, String>> {
    let text = output(cargo(&members.workspace_root).args(["metadata", "--format-version", "1"]))?;
    let resolved: Resolved =
        serde_json::from_str(&text).context("failed to read the answer of `cargo metadata`")?;
    let versions = resolved.packages.into_iter().map(|package| {
        let n_parts = if package.version.starts_with("0.") { 2 } else { 1 };
        let parts: Vec<_> = package.version.split('.').take(n_parts).collect();
        (package.name.replace('-', "_"), parts.join("."))
    });
    Ok(versions.collect())
}
