use std::{
    fs::{self, DirBuilder, File, FileTimes, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

use rustix::fs::OFlags;

/// Directory for files that decide what agents see, and can be made again. The directory and the files must belong to the user of
/// this process alone: the directory has mode 0700 and the files 0600. Files are replaced as a whole, by renaming.
///
/// # Examples
/// ```
/// use tool_exec_mcp::PrivateFolder;
///
/// # let directory = tempfile::tempdir()?;
/// let folder = PrivateFolder::new(directory.path().join("kept"));
/// folder.replace("answer.json", "42")?;
/// assert_eq!(folder.read("answer.json", 1024)?, b"42");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct PrivateFolder {
    path: PathBuf,
    /// Number of files written, which makes temporary names unique.
    n_written: AtomicU64,
}

/// Age at which an unfinished file is deleted.
const ABANDONED: Duration = Duration::from_secs(3600);
/// Suffix of files that are being written.
const UNFINISHED: &str = ".tmp";

impl PrivateFolder {
    /// Names the directory, which is created when a file is first written.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            n_written: AtomicU64::new(0),
        }
    }

    /// Returns the path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that nobody else can put files into the directory. To be done before files are [read](Self::read).
    ///
    /// # Errors
    /// [`NotFound`](io::ErrorKind::NotFound) if it does not exist, [`PermissionDenied`](io::ErrorKind::PermissionDenied) if it is
    /// of another user or mode, a link, or no directory.
    pub fn check(&self) -> io::Result<()> {
        let metadata = fs::symlink_metadata(&self.path)?;
        check_owner(&metadata, metadata.is_dir(), &self.path)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If there is none, it is larger than so many bytes, a link, or of another user or mode.
    pub fn read(&self, name: &str, max_bytes: u64) -> io::Result<Vec<u8>> {
        let path = self.path.join(name);
        // A named pipe must not block the read.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(&path)?;
        let metadata = file.metadata()?;
        check_owner(&metadata, metadata.is_file(), &path)?;
        let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, "it is too large");
        if metadata.len() > max_bytes {
            return Err(too_large());
        }
        let mut text = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
        file.take(max_bytes.saturating_add(1)).read_to_end(&mut text)?;
        if text.len() as u64 > max_bytes {
            return Err(too_large());
        }
        Ok(text)
    }

    /// Writes a file, and creates the directory if needed. A file that has this content already only gets a new time, so that the
    /// time of the directory tells if anything has changed.
    ///
    /// # Errors
    /// As [`check`](Self::check), or if the file cannot be written.
    pub fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.path)?;
        self.check()?;
        let path = self.path.join(name);
        if self
            .read(name, text.len() as u64)
            .is_ok_and(|known| known == text.as_bytes())
        {
            let file = OpenOptions::new()
                .write(true)
                .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
                .open(path)?;
            return file.set_times(FileTimes::new().set_modified(SystemTime::now()));
        }
        let n_written = self.n_written.fetch_add(1, Ordering::Relaxed);
        let unfinished = self
            .path
            .join(format!("{}-{n_written}{UNFINISHED}", std::process::id()));
        let written = write(&unfinished, text).and_then(|()| fs::rename(&unfinished, path));
        if written.is_err() {
            // It may not exist.
            let _ = fs::remove_file(&unfinished);
        }
        written
    }

    /// Deletes the oldest of the files with these names beyond the maximum, and abandoned unfinished files.
    ///
    /// # Errors
    /// If the directory cannot be read, or a file cannot be deleted.
    pub fn sweep(&self, max_files: usize, is_counted: impl Fn(&str) -> bool) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            // Other processes sweep as well.
            let Ok(modified) = entry.metadata().and_then(|metadata| metadata.modified()) else {
                continue;
            };
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let age = SystemTime::now().duration_since(modified).unwrap_or_default();
            if is_counted(&name) {
                files.push((modified, entry.path()));
            } else if name.ends_with(UNFINISHED) && age > ABANDONED {
                ignore_missing(fs::remove_file(entry.path()))?;
            }
        }
        files.sort();
        let n_old = files.len().saturating_sub(max_files);
        for (_, path) in files.drain(..n_old) {
            ignore_missing(fs::remove_file(path))?;
        }
        Ok(())
    }
}

fn check_owner(metadata: &fs::Metadata, is_expected: bool, path: &Path) -> io::Result<()> {
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if is_expected && is_ours && metadata.mode() & 0o077 == 0 {
        return Ok(());
    }
    let message = format!("`{}` does not belong to this user alone", path.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// Writes a new file.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file: File = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)?;
    file.write_all(text.as_bytes())
}

/// Returns success if a file that was to be removed is gone already.
pub(super) fn ignore_missing(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
