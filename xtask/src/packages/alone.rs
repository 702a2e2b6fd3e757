//! Builds each package alone from its archive.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::pack::Archive;
use crate::support::console::say;
use crate::support::members::WorkspaceMembers;
use crate::support::process::{cargo, run};
use crate::support::repository::Repository;

/// Checks each unpacked package with the features that it has by default.
///
/// The packages stand in a workspace of their own, in which they replace the published packages of these names. Only
/// one package is checked at a time, so that none receives a feature that another one enables. Everything that is built
/// is shared with other builds.
pub(super) fn check_each(
    repository: &Repository,
    members: &WorkspaceMembers,
    folder: &Path,
    archives: &[Archive],
) -> Result<()> {
    let root = folder.join("unpacked");
    let write = |name: &str, text: &str| {
        fs::write(root.join(name), text).with_context(|| format!("failed to write `{name}`"))
    };
    write("Cargo.toml", &manifest(archives))?;
    // The versions that are tested.
    write(
        "Cargo.lock",
        &repository
            .text("Cargo.lock")
            .context("failed to read `Cargo.lock`")?,
    )?;
    for (index, archive) in archives.iter().enumerate() {
        say(format_args!(
            "package: `{}` alone ({} of {})",
            archive.package,
            index + 1,
            archives.len()
        ));
        run(cargo(&root)
            .args(["check", "--quiet", "--package", &archive.package, "--target-dir"])
            .arg(&members.target_directory))?;
    }
    Ok(())
}

/// Returns the manifest of the workspace. Its profile is ours, so that dependencies are not built once more.
fn manifest(archives: &[Archive]) -> String {
    let mut text = "[workspace]\nresolver = \"3\"\nmembers = [\"*\"]\n\n\
                    [profile.dev]\ndebug = \"line-tables-only\"\n\n[patch.crates-io]\n"
        .to_owned();
    for archive in archives {
        let folder = archive.unpacked.file_name().unwrap_or_default().to_string_lossy();
        text += &format!("{} = {{ path = \"{folder}\" }}\n", archive.package);
    }
    text
}
