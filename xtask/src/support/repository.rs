//! The checkout: its root and its files.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::support::process::output;

/// Root of the checkout and the files in it that are not ignored.
#[derive(Clone, Debug)]
pub struct Repository {
    root: PathBuf,
    files: Vec<PathBuf>,
}

impl Repository {
    /// Opens the checkout that this program was built from.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read.
    pub fn open() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("the folder of xtask has no parent")?
            .to_path_buf();
        Self::at(root)
    }

    /// Opens the checkout at `root`. Without git, its files are all those outside of `target` and `node_modules`.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read.
    pub fn at(root: impl Into<PathBuf>) -> Result<Self> {
        let root = root.into();
        let mut files = match listed_by_git(&root) {
            Some(files) => files,
            None => listed_by_hand(&root)?,
        };
        files.retain(|file| root.join(file).is_file());
        files.sort();
        files.dedup();
        Ok(Self { root, files })
    }

    /// Returns the root.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the files, relative to the root and sorted: tracked files, and new files that are not ignored.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Reads a text file. Returns `None` if the file is missing or is not text.
    #[must_use]
    pub fn text(&self, file: impl AsRef<Path>) -> Option<String> {
        fs::read_to_string(self.root.join(file)).ok()
    }

    /// Returns the folder for built and installed files.
    ///
    /// It is `target` regardless of `CARGO_TARGET_DIR`: an installed tool serves every build folder.
    #[must_use]
    pub fn target(&self) -> PathBuf {
        self.root.join("target")
    }

    /// Returns the commit that is checked out, or `None` if the tree differs from it.
    #[must_use]
    pub fn clean_commit(&self) -> Option<String> {
        let status = output(git(&self.root).args(["status", "--porcelain"])).ok()?;
        let commit = output(git(&self.root).args(["rev-parse", "HEAD"])).ok()?;
        status.trim().is_empty().then(|| commit.trim().to_owned())
    }
}

fn git(root: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(root);
    command
}

fn listed_by_git(root: &Path) -> Option<Vec<PathBuf>> {
    if !root.join(".git").exists() {
        return None;
    }
    let listed =
        output(git(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])).ok()?;
    Some(listed.split_terminator('\0').map(PathBuf::from).collect())
}

fn listed_by_hand(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("failed to read `{}`", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            if entry.file_type()?.is_dir() {
                if ![".git", "target", "node_modules"]
                    .iter()
                    .any(|skipped| name == *skipped)
                {
                    folders.push(entry.path());
                }
            } else if let Ok(file) = entry.path().strip_prefix(root) {
                files.push(file.to_path_buf());
            }
        }
    }
    Ok(files)
}

/// Resolves `.` and `..` without file system access. Returns `None` if the path leaves the root.
pub(crate) fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !normal.pop() {
                    return None;
                }
            }
            part => normal.push(part),
        }
    }
    Some(normal)
}
