//! Packages that users install: tarballs, and packages of Debian, npm and PyPI, and a recipe of a container image.

mod container;
mod debian;
mod elf;
mod entry;
pub(crate) mod installs;
mod licences;
mod npm;
mod release;
pub(crate) mod symbols;
mod tarball;
#[cfg(test)]
mod tests;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use self::release::Release;
use crate::build::release::release;
use crate::support::console::say;
use crate::support::process::find;
use crate::support::repository::Repository;

/// Packages of one release.
#[derive(Clone, Debug)]
pub(crate) struct Packages {
    /// Program without symbols.
    pub(crate) program: PathBuf,
    pub(crate) tarball: PathBuf,
    /// Debian package, or the reason if it is missing.
    pub(crate) debian: Result<PathBuf, String>,
    /// Package of the platform, then the one that users install.
    pub(crate) npm: [PathBuf; 2],
    pub(crate) wheel: PathBuf,
    /// Folder of the recipe.
    pub(crate) container: PathBuf,
}

/// Packs a program into `target/dist`. Without `program`, builds the release first.
///
/// # Errors
/// Returns an error if the program cannot be built, is no program for Linux of this version, or cannot be packed.
pub fn dist(repository: &Repository, program: Option<&Path>) -> Result<()> {
    packages(repository, program).map(drop)
}

/// Packs like [`dist`] and returns the packages.
pub(crate) fn packages(repository: &Repository, program: Option<&Path>) -> Result<Packages> {
    let program = match program {
        Some(program) => fs::canonicalize(program)
            .with_context(|| format!("failed to find the program `{}`", program.display()))?,
        None => release(repository)?,
    };
    let folder = repository.target().join("dist");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("failed to clear `{}`", folder.display()))?;
    }
    let split = symbols::split(&program, &folder.join("program"))?;
    say(format_args!("dist: the program has {}", symbols::sizes(&split)?));
    let release = Release::collect(repository, &split.program)?;
    if let Some(symbols) = &split.symbols {
        report(&tarball::symbols(&release, symbols, &folder)?)?;
    }
    pack(&release, &split.program, &folder)
}

/// Writes all packages of a release.
fn pack(release: &Release, program: &Path, folder: &Path) -> Result<Packages> {
    let packages = Packages {
        program: program.to_path_buf(),
        tarball: tarball::program(release, folder)?,
        debian: match find("dpkg-deb") {
            Some(_) => Ok(debian::package(release, folder)?),
            None => Err("`dpkg-deb` is not installed".to_owned()),
        },
        npm: npm::packages(release, folder)?,
        wheel: wheel::wheel(release, folder)?,
        container: container::recipe(release, program, folder)?,
    };
    report(&packages.tarball)?;
    match &packages.debian {
        Ok(package) => report(package)?,
        Err(reason) => say(format_args!("dist: no Debian package: {reason}")),
    }
    for package in &packages.npm {
        report(package)?;
    }
    report(&packages.wheel)?;
    say(format_args!(
        "dist: `{}` is the recipe of an image",
        packages.container.display()
    ));
    Ok(packages)
}

fn report(file: &Path) -> Result<()> {
    let bytes = fs::metadata(file)
        .with_context(|| format!("failed to read `{}`", file.display()))?
        .len();
    say(format_args!(
        "dist: `{}` has {:.1} MB",
        file.display(),
        bytes as f64 / 1e6
    ));
    Ok(())
}
