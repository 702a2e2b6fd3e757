//! Checks that each feature of the facade compiles alone, and so do its tests.

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use crate::support::console::say;
use crate::support::members::{Package, WorkspaceMembers};
use crate::support::process::{cargo, run};
use crate::support::repository::Repository;

/// Crate whose features users choose.
const FACADE: &str = "toolplane";

/// Checks the facade without features and with each feature alone. Every other step builds it with all features.
pub(crate) fn each_feature(repository: &Repository) -> Result<()> {
    let members = WorkspaceMembers::load(repository.root())?;
    let facade = members
        .get(FACADE)
        .with_context(|| format!("there is no member `{FACADE}`"))?;
    let others = other_members(&members);
    for feature in std::iter::once("").chain(single(facade)) {
        say(format_args!(
            "features: `{FACADE}` with {}",
            if feature.is_empty() { "none" } else { feature }
        ));
        // The library by itself: other packages in the same build may enable features that it lacks.
        run(cargo(repository.root())
            .args(["check", "--quiet", "--lib", "--package", FACADE])
            .args(["--no-default-features", "--features", feature]))?;
        // The tests of the facade together with all members that do not enable features of the facade: external
        // crates then have the same features each time, and are built once.
        let mut clippy = cargo(repository.root());
        clippy.args(["clippy", "--quiet", "--tests", "--package", FACADE]);
        for name in &others {
            clippy.args(["--package", name]);
        }
        clippy.arg("--no-default-features");
        if !feature.is_empty() {
            clippy.args(["--features", &format!("{FACADE}/{feature}")]);
        }
        run(clippy.args(["--", "--deny", "warnings"]))?;
    }
    Ok(())
}

/// Returns the features that are not made of other features.
fn single(facade: &Package) -> impl Iterator<Item = &str> {
    let is_single = |parts: &[String]| !parts.iter().any(|part| facade.features.contains_key(part));
    let features = facade.features.iter();
    features
        .filter(move |(_, parts)| is_single(parts))
        .map(|(name, _)| name.as_str())
}

/// Returns the members that do not depend on the facade, directly or indirectly.
fn other_members(members: &WorkspaceMembers) -> Vec<&str> {
    let mut above = BTreeSet::from([FACADE]);
    loop {
        let n_above = above.len();
        for package in &members.packages {
            let mut dependencies = package.dependencies.iter();
            if dependencies.any(|dependency| above.contains(dependency.name.as_str())) {
                above.insert(&package.name);
            }
        }
        if above.len() == n_above {
            let names = members.packages.iter().map(|package| package.name.as_str());
            return names.filter(|name| !above.contains(name)).collect();
        }
    }
}
