//! Tarballs for every Linux: of the program with its texts, and of its symbols.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::entry::{Entry, tar_gz, write_archive};
use super::release::{NAME, Release};

/// Writes the tarball of the program.
pub(super) fn program(release: &Release, folder: &Path) -> Result<PathBuf> {
    let stem = stem(release);
    let packed = tar_gz(&stem, &entries(release), release.mtime)?;
    write_archive(folder.join(format!("{stem}.tar.gz")), &packed)
}

/// Writes the tarball of the symbols, which is unpacked beside the program.
pub(super) fn symbols(release: &Release, symbols: &Path, folder: &Path) -> Result<PathBuf> {
    let content = fs::read(symbols).with_context(|| format!("failed to read `{}`", symbols.display()))?;
    let entry = Entry::file(format!("bin/{NAME}.debug"), content);
    let stem = stem(release);
    let packed = tar_gz(&stem, &[entry], release.mtime)?;
    write_archive(folder.join(format!("{stem}-symbols.tar.gz")), &packed)
}

fn stem(release: &Release) -> String {
    format!("{NAME}-{}-{}", release.version, release.binary.target())
}

fn entries(release: &Release) -> Vec<Entry> {
    let mut entries = vec![Entry::program(format!("bin/{NAME}"), release.program.clone())];
    entries.extend(release.pages.iter().map(|page| page.within("share/man/man1")));
    entries.extend(release.completions.iter().map(|(shell, script)| {
        let name = completion_file(shell);
        Entry::file(format!("completions/{name}"), script.clone())
    }));
    entries.extend(release.documents.iter().cloned());
    entries
}

/// Returns the name that a shell expects of the file with its completions.
pub(super) fn completion_file(shell: &str) -> String {
    match shell {
        "bash" => format!("{NAME}.bash"),
        "zsh" => format!("_{NAME}"),
        "fish" => format!("{NAME}.fish"),
        "powershell" => format!("_{NAME}.ps1"),
        other => format!("{NAME}.{}", if other == "elvish" { "elv" } else { other }),
    }
}
