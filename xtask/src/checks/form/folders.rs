use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use crate::support::console::Violation;

/// Largest number of files in one folder, without `lib.rs`, `main.rs` and `mod.rs`.
const MAX_FILES: usize = 12;
/// Files that do not count: they only join the files of the folder.
const ROOTS: [&str; 3] = ["lib.rs", "main.rs", "mod.rs"];

/// Number of files in each folder of sources.
#[derive(Debug, Default)]
pub(super) struct FolderCounts(BTreeMap<PathBuf, usize>);

impl FolderCounts {
    pub(super) fn add(&mut self, file: &Path) {
        let is_root = ROOTS.iter().any(|root| file.ends_with(root));
        if let (Some(folder), false) = (file.parent(), is_root) {
            *self.0.entry(folder.to_path_buf()).or_default() += 1;
        }
    }

    pub(super) fn violations(&self) -> Vec<Violation> {
        let flat = self.0.iter().filter(|(_, n_files)| **n_files > MAX_FILES);
        flat.map(|(folder, n_files)| {
            let message = format!(
                "{n_files} files in one folder, {MAX_FILES} at most: sort them into folders by subject"
            );
            Violation::in_file(folder, message)
        })
        .collect()
    }
}

impl Display for FolderCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let largest = self.0.values().max().copied().unwrap_or_default();
        write!(f, "folders: {}; most files in one: {largest}", self.0.len())
    }
}
