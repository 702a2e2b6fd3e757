//! Table of all packages for the page about publishing.

use anyhow::Result;

use crate::support::members::{Package, WorkspaceMembers};
use crate::support::repository::Repository;

/// Returns the table: published packages in the order of their publication, then the others with the reason.
pub(crate) fn package_table(repository: &Repository) -> Result<String> {
    let members = WorkspaceMembers::load(repository.root())?;
    let mut table = "| order | package | published | why |\n|---|---|---|---|\n".to_owned();
    for (index, package) in members.published().enumerate() {
        let kind = if package.is_library() {
            "a library"
        } else {
            "the program"
        };
        table += &row(&(index + 1).to_string(), package, "yes", kind);
    }
    for package in members.packages.iter().filter(|package| !package.is_published()) {
        table += &row("", package, "no", package.reason_unpublished().unwrap_or("?"));
    }
    Ok(table)
}

fn row(order: &str, package: &Package, published: &str, reason: &str) -> String {
    format!("| {order} | `{}` | {published} | {reason} |\n", package.name)
}
