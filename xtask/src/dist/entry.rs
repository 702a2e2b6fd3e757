//! Files of packages, and folders and archives that are made of them.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};

/// File of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Path in the package, with `/` between its parts.
    pub(super) path: String,
    /// Permissions.
    pub(super) mode: u32,
    pub(super) content: Vec<u8>,
}

impl Entry {
    /// Creates a file that everybody may read.
    pub(super) fn file(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            mode: 0o644,
            content: content.into(),
        }
    }

    /// Creates a file that everybody may execute.
    pub(super) fn program(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self {
            mode: 0o755,
            ..Self::file(path, content)
        }
    }

    /// Returns the same file in a folder.
    pub(super) fn within(&self, folder: &str) -> Self {
        Self {
            path: format!("{folder}/{}", self.path),
            ..self.clone()
        }
    }
}

/// Writes the files and their folders below `root`.
pub(super) fn write_tree(root: &Path, entries: &[Entry]) -> Result<()> {
    for entry in entries {
        let path = root.join(&entry.path);
        write(&path, &entry.content)?;
        fs::set_permissions(&path, Permissions::from_mode(entry.mode))
            .with_context(|| format!("failed to set the permissions of `{}`", path.display()))?;
    }
    Ok(())
}

/// Writes a file, and makes its folder.
pub(super) fn write(path: &Path, content: &[u8]) -> Result<()> {
    path.parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(path, content))
        .with_context(|| format!("failed to write `{}`", path.display()))
}

/// Writes an archive and, beside it, its SHA-256 in the form that `sha256sum --check` reads.
pub(super) fn write_archive(path: PathBuf, content: &[u8]) -> Result<PathBuf> {
    write(&path, content)?;
    write_digest(&path)?;
    Ok(path)
}

/// Writes the SHA-256 of a file beside it.
pub(super) fn write_digest(path: &Path) -> Result<()> {
    let content = fs::read(path).with_context(|| format!("failed to read `{}`", path.display()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let digest = hex::encode(Sha256::digest(content));
    let beside = path.with_file_name(format!("{name}.sha256"));
    write(&beside, format!("{digest}  {name}\n").as_bytes())
}

/// Packs the files below the folder `root` of an archive. Equal files result in equal bytes: entries are sorted, belong to
/// root and have the time `mtime`, in seconds since 1970.
pub(super) fn tar_gz(root: &str, entries: &[Entry], mtime: u64) -> Result<Vec<u8>> {
    let mut sorted: Vec<_> = entries.iter().collect();
    sorted.sort_by(|a, b| a.path.cmp(&b.path));
    let mut builder = tar::Builder::new(GzBuilder::new().write(Vec::new(), Compression::default()));
    for entry in sorted {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(entry.mode);
        header.set_mtime(mtime);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(entry.content.len().try_into()?);
        builder
            .append_data(&mut header, format!("{root}/{}", entry.path), &entry.content[..])
            .with_context(|| format!("failed to pack `{}`", entry.path))?;
    }
    let packed = builder.into_inner().and_then(flate2::write::GzEncoder::finish);
    packed.context("failed to pack an archive")
}

/// Compresses a file as `gzip -9n` does: without its name and time.
pub(super) fn gzip(content: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder
        .write_all(content)
        .and_then(|()| encoder.finish())
        .context("failed to compress a file")
}
