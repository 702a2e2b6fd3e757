//! Files of the work directory, read after the process tree is gone.
//!
//! Everything in the directory is the work of the program. No link is followed, no other file system is entered, only
//! regular files are read, and each is bounded before it is read.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2};

use crate::{CollectedFile, SandboxCollect, SkippedFile};

/// Maximum depth of directories.
const MAX_DEPTH: usize = 16;

/// Maximum number of directory entries that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// Files that were collected, and those that were not.
#[derive(Debug, Default)]
pub(super) struct Collection {
    pub(super) files: Vec<CollectedFile>,
    pub(super) skipped: Vec<SkippedFile>,
    bytes: u64,
    entries: usize,
}

/// Collects files below `root`.
pub(super) fn collect(root: &OwnedFd, wanted: &SandboxCollect) -> Collection {
    let mut collection = Collection::default();
    for path in &wanted.paths {
        collection.visit(root.as_fd(), path, wanted, 0);
    }
    collection
}

impl Collection {
    fn visit(&mut self, root: BorrowedFd<'_>, path: &Path, wanted: &SandboxCollect, depth: usize) {
        let outcome = match kind(root, path) {
            Ok((FileType::Directory, _)) if depth < MAX_DEPTH => {
                self.visit_directory(root, path, wanted, depth)
            }
            Ok((FileType::Directory, _)) => Err("it is nested too deep".to_owned()),
            Ok((FileType::RegularFile, stat)) => self.add(root, path, &stat, wanted),
            Ok((FileType::Symlink, _)) => Err("it is a link".to_owned()),
            Ok(_) => Err("it is no regular file".to_owned()),
            Err(error) => Err(describe(&error)),
        };
        if let Err(reason) = outcome {
            self.skip(path, reason, wanted);
        }
    }

    fn visit_directory(
        &mut self,
        root: BorrowedFd<'_>,
        path: &Path,
        wanted: &SandboxCollect,
        depth: usize,
    ) -> Result<(), String> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let folder = open(root, path, flags).map_err(|error| describe(&error))?;
        let mut names = Vec::new();
        for entry in Dir::read_from(&folder).map_err(|error| describe(&error.into()))? {
            let entry = entry.map_err(|error| describe(&error.into()))?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(format!("there are more than {MAX_ENTRIES} entries"));
            }
            match std::str::from_utf8(name) {
                Ok(name) => names.push(name.to_owned()),
                Err(_) => self.skip(path, "a name in it is not UTF-8".to_owned(), wanted),
            }
        }
        names.sort_unstable();
        for name in names {
            self.visit(root, &path.join(name), wanted, depth + 1);
        }
        Ok(())
    }

    fn add(
        &mut self,
        root: BorrowedFd<'_>,
        path: &Path,
        stat: &Stat,
        wanted: &SandboxCollect,
    ) -> Result<(), String> {
        if self.files.len() >= wanted.max_files {
            return Err(format!("there are more than {} files", wanted.max_files));
        }
        // A second name may be one outside the work directory.
        if stat.st_nlink > 1 {
            return Err("it is a link".to_owned());
        }
        let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
        let left = wanted.max_total_bytes.saturating_sub(self.bytes);
        if size > wanted.max_file_bytes.min(left) {
            return Err(format!("its {size} bytes exceed the limit"));
        }
        let file = open(root, path, OFlags::RDONLY | OFlags::NONBLOCK).map_err(|error| describe(&error))?;
        let mut bytes = Vec::new();
        File::from(file)
            .take(size)
            .read_to_end(&mut bytes)
            .map_err(|error| describe(&error))?;
        self.bytes += size;
        self.files.push(CollectedFile {
            path: path.to_path_buf(),
            bytes,
        });
        Ok(())
    }

    fn skip(&mut self, path: &Path, reason: String, wanted: &SandboxCollect) {
        // A program that makes many files does not make many reports.
        if self.skipped.len() < wanted.max_files {
            self.skipped.push(SkippedFile {
                path: PathBuf::from(path),
                reason,
            });
        }
    }
}

/// Returns the type of the file itself, even if it is a link.
fn kind(root: BorrowedFd<'_>, path: &Path) -> io::Result<(FileType, Stat)> {
    let file = open(root, path, OFlags::PATH | OFlags::NOFOLLOW)?;
    let stat = fstat(file)?;
    Ok((FileType::from_raw_mode(stat.st_mode), stat))
}

fn open(root: BorrowedFd<'_>, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    let flags = flags | OFlags::CLOEXEC;
    // `NO_SYMLINKS` refuses to open a link itself too, unless `NOFOLLOW` and `PATH` ask for that.
    Ok(openat2(root, path, flags, Mode::empty(), resolve)?)
}

fn describe(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT) => "it does not exist".to_owned(),
        Some(libc::ELOOP) => "it is a link, or lies behind one".to_owned(),
        Some(libc::EXDEV) => "it lies outside the work directory".to_owned(),
        _ => error.to_string(),
    }
}
