//! Archives of the published packages: their files, and a build of each one alone.

mod alone;
mod contents;
mod pack;
mod table;

use anyhow::Result;

pub(crate) use self::table::package_table;
use crate::api::api;
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

/// Checks everything that a release needs in addition to `ci`: the build of each package alone, and the public API.
///
/// # Errors
/// Returns an error if one of the checks fails.
pub fn release_check(repository: &Repository) -> Result<()> {
    package(repository, true)?;
    api(repository, false)
}
