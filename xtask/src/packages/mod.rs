//! Archives of the published packages: their files, and a build of each one alone.

mod alone;
mod contents;
mod pack;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

pub(crate) use self::table::package_table;
use crate::api::api;
use crate::checks::features::each_of_facade;
use crate::dist;
use crate::peers;
use crate::support::console::{refuse, say};
use crate::support::members::WorkspaceMembers;
use crate::support::repository::Repository;

/// Packs every published package, and checks the files in the archives. With `build`, also builds each package alone
/// from its archive.
///
/// # Errors
/// Returns an error if a package cannot be packed, if an archive lacks a file or has one too many, or if a package
/// cannot be built.
pub fn package(repository: &Repository, build: bool) -> Result<()> {
    let members = WorkspaceMembers::load(repository.root())?;
    let folder = repository.target().join("packages");
    let archives = pack::pack(&members, &folder)?;
    refuse("package", contents::check(&members, &archives)?)?;
    say(contents::summary(&archives)?);
    if build {
        alone::check_each(repository, &members, &folder, &archives)?;
    }
    Ok(())
}

/// Options of [`release_check`].
#[derive(Clone, Debug, Default)]
pub struct ReleaseCheckOptions {
    /// Program that is packed and installed. If `None`, the release program is built first.
    pub program: Option<PathBuf>,
    /// Parts to check. If empty, all parts are checked.
    pub only: Vec<String>,
}

type Part = (&'static str, fn(&Repository, &ReleaseCheckOptions) -> Result<()>);

/// Parts of the check of a release.
const PARTS: [Part; 4] = [
    ("packages", |repository, _| package(repository, true)),
    ("api", |repository, _| api(repository, false)),
    ("features", |repository, _| each_of_facade(repository)),
    ("installs", |repository, options| {
        installs(repository, options.program.as_deref())
    }),
];

/// Checks everything that a release needs in addition to `ci`: the build of each package alone, the public API, the
/// facade with each feature alone, and the installation of everything that users install.
///
/// # Errors
/// Returns an error if one of the checks fails, or if an unknown part is named.
pub fn release_check(repository: &Repository, options: &ReleaseCheckOptions) -> Result<()> {
    if let Some(unknown) = options
        .only
        .iter()
        .find(|name| !PARTS.iter().any(|(part, _)| part == name))
    {
        bail!(
            "there is no part `{unknown}`; the parts are {}",
            PARTS.map(|(name, _)| name).join(", ")
        );
    }
    let is_asked = |part: &str| options.only.is_empty() || options.only.iter().any(|name| name == part);
    for (_, check) in PARTS.iter().filter(|(name, _)| is_asked(name)) {
        check(repository, options)?;
    }
    Ok(())
}

/// Packs the program as `cargo xtask dist` does, and installs and runs each package.
fn installs(repository: &Repository, program: Option<&Path>) -> Result<()> {
    let members = WorkspaceMembers::load(repository.root())?;
    let member = members
        .get("toolplane-cli")
        .context("the workspace has no `toolplane-cli`")?;
    let packages = dist::packages(repository, program)?;
    // Without podman, the check of the image is skipped with the reason.
    if let Err(error) = peers::podman(&peers::folder(repository)) {
        say(format_args!("installs: podman cannot be installed: {error:#}"));
    }
    dist::installs::check_each(&packages, &member.version)
}
