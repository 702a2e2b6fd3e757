//! Rules for the files in an archive.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::pack::Archive;
use crate::support::console::Violation;
use crate::support::members::WorkspaceMembers;
use crate::support::repository::Repository;

/// Files that every package has.
const REQUIRED: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];
/// Files that cargo adds.
const BY_CARGO: [&str; 3] = ["Cargo.toml", "Cargo.toml.orig", ".cargo_vcs_info.json"];
/// Maximum size of one file, in bytes: sources are smaller, and anything else does not belong into a package.
const MAX_FILE: u64 = 64 * 1024;
/// Maximum size of an archive, in bytes.
const MAX_ARCHIVE: u64 = 256 * 1024;

/// Checks the unpacked files and the sizes of the archives.
pub(super) fn check(members: &WorkspaceMembers, archives: &[Archive]) -> Result<Vec<Violation>> {
    let mut problems = Vec::new();
    for archive in archives {
        let Some(package) = members.get(&archive.package) else {
            continue;
        };
        let folder = members.folder(package);
        let files = files(&archive.unpacked)?;
        let messages = files.iter().flat_map(|(file, size)| check_file(file, *size));
        problems.extend(messages.map(|(file, message)| Violation::in_file(folder.join(file), message)));
        let manifest = members.manifest(package);
        let mut report = |message: String| problems.push(Violation::in_file(&manifest, message));
        let has = |name: &str| files.iter().any(|(file, _)| file == Path::new(name));
        for name in REQUIRED.iter().filter(|name| !has(name)) {
            report(format!("the package lacks `{name}`"));
        }
        let has_program = has("src/main.rs") || files.iter().any(|(file, _)| file.starts_with("src/bin"));
        if package.is_library() && has_program {
            report(
                "the package of a library contains a program: `cargo install` would install it".to_owned(),
            );
        }
        let size = size(&archive.file)?;
        if size > MAX_ARCHIVE {
            report(format!("the package has {size} bytes, {MAX_ARCHIVE} at most"));
        }
    }
    Ok(problems)
}

/// Returns the number of packages and the size of all of them, and of the largest.
pub(super) fn summary(archives: &[Archive]) -> Result<String> {
    let sizes: Vec<_> = archives
        .iter()
        .map(|archive| size(&archive.file))
        .collect::<Result<_>>()?;
    let kib = |bytes: u64| bytes.div_ceil(1024);
    let largest = sizes.iter().copied().max().unwrap_or_default();
    Ok(format!(
        "package: {} packages, {} KiB, the largest {} KiB",
        archives.len(),
        kib(sizes.iter().sum()),
        kib(largest)
    ))
}

fn check_file(file: &Path, size: u64) -> Vec<(&Path, String)> {
    let mut messages = Vec::new();
    let is_listed = |names: &[&str]| names.iter().any(|name| file == Path::new(name));
    if !file.starts_with("src") && !is_listed(&REQUIRED) && !is_listed(&BY_CARGO) {
        messages.push((
            file,
            "is packed: a package has its sources, a README and the licences".to_owned(),
        ));
    }
    if size > MAX_FILE {
        messages.push((file, format!("is packed with {size} bytes, {MAX_FILE} at most")));
    }
    messages
}

fn files(folder: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let unpacked = Repository::at(folder)?;
    unpacked
        .files()
        .iter()
        .map(|file| Ok((file.clone(), size(&folder.join(file))?)))
        .collect()
}

fn size(file: &Path) -> Result<u64> {
    let metadata = fs::metadata(file).with_context(|| format!("failed to read `{}`", file.display()))?;
    Ok(metadata.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sources_readme_and_licences_are_packed() {
        let messages = |file: &str, size| -> Vec<String> {
            check_file(Path::new(file), size)
                .into_iter()
                .map(|(_, message)| message)
                .collect()
        };
        assert_eq!(messages("src/lib.rs", 1), Vec::<String>::new());
        assert_eq!(messages("LICENSE-MIT", 1), Vec::<String>::new());
        assert_eq!(messages("Cargo.toml", 1), Vec::<String>::new());
        assert_eq!(
            messages("tests/fixtures/calls.jsonl", 70_000),
            [
                "is packed: a package has its sources, a README and the licences",
                "is packed with 70000 bytes, 65536 at most",
            ]
        );
    }
}
