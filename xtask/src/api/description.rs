//! Descriptions of public APIs, as JSON of rustdoc.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::support::members::WorkspaceMembers;
use crate::support::process::{cargo, run};

/// Options of rustdoc with which cargo-semver-checks reads its output.
const OPTIONS: &str = "-Z unstable-options --output-format json --document-private-items --document-hidden-items --cap-lints allow";

/// Description of the public API of one library.
#[derive(Clone, Debug)]
pub(super) struct ApiDescription {
    /// Name of the package.
    pub(super) package: String,
    /// File of rustdoc.
    pub(super) file: PathBuf,
}

/// Describes all published libraries of a workspace with all their features. The files go to `folder`; everything else
/// that is built is shared with other builds in `build_folder`.
pub(super) fn describe(
    members: &WorkspaceMembers,
    folder: &Path,
    build_folder: &Path,
) -> Result<Vec<ApiDescription>> {
    let described = described(members, folder);
    let mut command = cargo(&members.workspace_root);
    command.args(["doc", "--quiet", "--no-deps", "--lib", "--all-features"]);
    for library in &described {
        command.args(["--package", &library.package]);
    }
    run(command
        .arg("--target-dir")
        .arg(folder)
        .env("CARGO_BUILD_BUILD_DIR", build_folder)
        .env("RUSTDOC", rustdoc(folder)?)
        .env("RUSTDOCFLAGS", OPTIONS))?;
    Ok(described)
}

/// Returns the descriptions of all published libraries in a folder, whether they are there or not.
pub(super) fn described(members: &WorkspaceMembers, folder: &Path) -> Vec<ApiDescription> {
    let libraries = members.published().filter(|package| package.is_library());
    let described = libraries.map(|package| ApiDescription {
        package: package.name.clone(),
        file: folder.join("doc").join(format!("{}.json", package.crate_name())),
    });
    described.collect()
}

/// Writes a program that starts rustdoc with its unstable options enabled. Enabled in the environment of cargo, they
/// would change the build of other crates as well.
fn rustdoc(folder: &Path) -> Result<PathBuf> {
    let program = folder.join("rustdoc.sh");
    let write = || {
        fs::create_dir_all(folder)?;
        fs::write(&program, "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n")?;
        fs::set_permissions(&program, PermissionsExt::from_mode(0o755))
    };
    write().with_context(|| format!("failed to write `{}`", program.display()))?;
    Ok(program)
}
