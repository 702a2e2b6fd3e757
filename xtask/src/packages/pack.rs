//! Packs and unpacks archives as cargo publishes them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::support::members::WorkspaceMembers;
use crate::support::process::{cargo, run_quietly};

/// Packed package.
#[derive(Clone, Debug)]
pub(super) struct Archive {
    /// Name of the package.
    pub(super) package: String,
    /// Archive.
    pub(super) file: PathBuf,
    /// Folder of its unpacked files.
    pub(super) unpacked: PathBuf,
}

/// Packs all published packages, with the changes that are not committed, and unpacks them side by side.
pub(super) fn pack(members: &WorkspaceMembers, folder: &Path) -> Result<Vec<Archive>> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("failed to remove `{}`", folder.display()))?;
    }
    let unpacked = folder.join("unpacked");
    fs::create_dir_all(&unpacked).with_context(|| format!("failed to create `{}`", unpacked.display()))?;
    let mut command = cargo(&members.workspace_root);
    // A lock file is of use to programs only, and takes a resolution of its own for each package.
    command.args([
        "package",
        "--quiet",
        "--no-verify",
        "--allow-dirty",
        "--exclude-lockfile",
    ]);
    for package in members.published() {
        command.args(["--package", &package.name]);
    }
    run_quietly(command.arg("--target-dir").arg(folder))?;
    members
        .published()
        .map(|package| {
            let stem = format!("{}-{}", package.name, package.version);
            let archive = Archive {
                package: package.name.clone(),
                file: folder.join("package").join(format!("{stem}.crate")),
                unpacked: unpacked.join(stem),
            };
            run_quietly(
                Command::new("tar")
                    .arg("-xzf")
                    .arg(&archive.file)
                    .arg("-C")
                    .arg(&unpacked),
            )?;
            Ok(archive)
        })
        .collect()
}
