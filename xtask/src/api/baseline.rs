//! Baseline of the public API: the sources of the commit that last changed one file.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::description::{self, ApiDescription};
use crate::support::members::WorkspaceMembers;
use crate::support::process::{output, run_quietly, succeeds};
use crate::support::repository::Repository;

/// File whose last change marks the baseline, so that a change of the API and its acceptance are one commit.
pub(super) const FILE: &str = "xtask/api-baseline";
/// Files from which the public API is built, and the page that describes it.
const SOURCES: [&str; 4] = ["crates", "Cargo.toml", "Cargo.lock", super::third_party::PAGE];

/// Baseline of a checkout.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Baseline {
    /// No commit has the file.
    Missing,
    /// The file is changed and not committed: the next commit is the baseline.
    Pending,
    /// The sources do not differ from the baseline.
    Same,
    /// Commit with other sources.
    Commit(String),
}

/// Sources of a baseline.
#[derive(Debug)]
pub(super) struct Unpacked {
    /// Root of the sources.
    pub(super) source: PathBuf,
    /// Folder for the descriptions of their API.
    folder: PathBuf,
}

impl Baseline {
    /// Finds the baseline of a checkout.
    pub(super) fn find(repository: &Repository) -> Result<Self> {
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command.current_dir(repository.root()).args(arguments);
            command
        };
        let is_shallow = output(&mut git(&["rev-parse", "--is-shallow-repository"]))?.trim() == "true";
        if is_shallow && output(&mut git(&["fetch", "--quiet", "--unshallow"])).is_err() {
            bail!(
                "the history is cut off, and the baseline of the API with it: `git fetch --unshallow` failed"
            );
        }
        if !output(&mut git(&["status", "--porcelain", "--", FILE]))?
            .trim()
            .is_empty()
        {
            return Ok(Self::Pending);
        }
        let commit = output(&mut git(&["log", "-1", "--format=%H", "--", FILE]))?;
        let commit = commit.trim();
        if commit.is_empty() || repository.text(FILE).is_none() {
            return Ok(Self::Missing);
        }
        let mut changed = git(&["diff", "--quiet", commit, "--"]);
        let mut new = git(&["ls-files", "--others", "--exclude-standard", "--"]);
        if succeeds(changed.args(SOURCES)) && output(new.args(SOURCES))?.trim().is_empty() {
            return Ok(Self::Same);
        }
        Ok(Self::Commit(commit.to_owned()))
    }
}

/// Returns the next text of the file.
pub(super) fn next(text: Option<&str>) -> String {
    let counted = text.and_then(|text| text.lines().last()?.trim().parse::<u64>().ok());
    format!(
        "# The commit that last changed this file is the baseline of the public API. `{}` changes it.\n{}\n",
        super::ACCEPT,
        counted.unwrap_or_default() + 1
    )
}

/// Unpacks the sources of a commit into `target/api`, unless they are there. Another version of Rust describes them
/// anew.
pub(super) fn unpack(repository: &Repository, commit: &str) -> Result<Unpacked> {
    let folder = repository.target().join("api/baseline");
    let source = folder.join("source");
    let mark = folder.join("commit");
    let marked = format!("{commit}\n{}", output(Command::new("rustdoc").arg("--version"))?);
    if fs::read_to_string(&mark).is_ok_and(|text| text == marked) {
        return Ok(Unpacked { source, folder });
    }
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("failed to remove `{}`", folder.display()))?;
    }
    fs::create_dir_all(&source).with_context(|| format!("failed to create `{}`", source.display()))?;
    let archive = folder.join("source.tar");
    run_quietly(
        Command::new("git")
            .current_dir(repository.root())
            .args(["archive", "--format=tar", "--output"])
            .arg(&archive)
            .arg(commit),
    )?;
    run_quietly(
        Command::new("tar")
            .arg("-xf")
            .arg(&archive)
            .arg("-C")
            .arg(&source),
    )?;
    fs::remove_file(&archive).with_context(|| format!("failed to remove `{}`", archive.display()))?;
    fs::write(&mark, marked).with_context(|| format!("failed to write `{}`", mark.display()))?;
    Ok(Unpacked { source, folder })
}

/// Describes the public API of unpacked sources, unless it is described there.
///
/// They are built in a folder of their own: cargo names the crates of both checkouts alike, and would take those of the one for
/// those of the other.
pub(super) fn describe(unpacked: &Unpacked) -> Result<Vec<ApiDescription>> {
    let members = WorkspaceMembers::load(&unpacked.source)?;
    let folder = unpacked.folder.join("described");
    let described = description::described(&members, &folder);
    if described.iter().all(|described| described.file.is_file()) {
        return Ok(described);
    }
    description::describe(&members, &folder, &unpacked.folder.join("build"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn git(root: &Path, arguments: &[&str]) {
        let mut command = Command::new("git");
        command
            .current_dir(root)
            .args(["-c", "user.name=a", "-c", "user.email=a"])
            .args(arguments);
        run_quietly(&mut command).unwrap();
    }

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn find(root: &Path) -> Baseline {
        Baseline::find(&Repository::at(root).unwrap()).unwrap()
    }

    #[test]
    fn the_baseline_is_the_commit_that_changed_the_file() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        git(root, &["init", "--quiet"]);
        write(root, "crates/a/src/lib.rs", "pub fn a() {}\n");
        write(root, "Cargo.toml", "[workspace]\n");
        write(root, "Cargo.lock", "\n");
        git(root, &["add", "."]);
        git(root, &["commit", "--quiet", "--message", "a"]);
        assert_eq!(find(root), Baseline::Missing);

        write(root, FILE, &next(None));
        assert_eq!(find(root), Baseline::Pending);
        git(root, &["add", "."]);
        git(root, &["commit", "--quiet", "--message", "b"]);
        let repository = Repository::at(root).unwrap();
        let accepted = repository.clean_commit().unwrap();
        assert_eq!(find(root), Baseline::Same);

        // A change elsewhere is none of the API, a new file below `crates` may be.
        write(root, "README.md", "A\n");
        assert_eq!(find(root), Baseline::Same);
        write(root, "crates/a/src/new.rs", "\n");
        assert_eq!(find(root), Baseline::Commit(accepted.clone()));
        git(root, &["add", "."]);
        git(root, &["commit", "--quiet", "--message", "c"]);
        assert_eq!(find(root), Baseline::Commit(accepted.clone()));

        let unpacked = unpack(&repository, &accepted).unwrap();
        assert!(unpacked.source.join("crates/a/src/lib.rs").is_file());
        assert!(!unpacked.source.join("crates/a/src/new.rs").exists());
    }

    #[test]
    fn each_acceptance_changes_the_file() {
        let first = next(None);
        assert!(first.ends_with("\n1\n"), "{first}");
        assert!(next(Some(&first)).ends_with("\n2\n"));
    }
}
