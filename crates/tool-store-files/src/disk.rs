//! The directory: reads, steps that change it, and its lock.

use std::{
    fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError},
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use tool_registry::StoreError;

use crate::FileStoreOptions;

/// Folder with what belongs to this machine.
pub(crate) const LOCAL: &str = ".toolplane";
const LOCK: &str = ".toolplane/lock";
/// Pause before the lock is tried again.
const LOCK_PAUSE: Duration = Duration::from_millis(5);
/// Largest file that is read. The rules of versions allow less.
const MAX_FILE: u64 = 64 << 20;

/// Directory of a store. Paths are relative to it, with `/` between their parts.
pub(crate) struct Disk {
    pub(crate) name: String,
    pub(crate) options: FileStoreOptions,
}

/// Identity of the content of a file, as far as the file system tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Returns `true` if the file was changed in the last second: it may not be written to its end yet.
    pub(crate) fn is_fresh(&self) -> bool {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = i64::try_from(now.unwrap_or_default().as_secs()).unwrap_or(i64::MAX);
        now.saturating_sub(self.changed.0) <= 1
    }
}

/// Access that was granted to the directory. The lock ends with it.
pub(crate) struct Access {
    _lock: Option<File>,
}

impl Disk {
    pub(crate) fn new(options: FileStoreOptions) -> Self {
        Self {
            name: format!("files {}", options.directory.display()),
            options,
        }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        match path {
            "" => self.options.directory.clone(),
            path => self.options.directory.join(path),
        }
    }

    pub(crate) fn error(&self, what: &str, path: &str, error: io::Error) -> StoreError {
        StoreError::Unavailable {
            store: self.name.clone(),
            message: format!("`{}` cannot be {what}", self.path(path).display()),
            source: Some(Arc::new(error)),
        }
    }

    /// Returns `true` if the directory exists.
    ///
    /// # Errors
    /// If others may write it: whoever does decides which tools run.
    pub(crate) fn exists(&self) -> Result<bool, StoreError> {
        match fs::metadata(self.path("")) {
            Ok(metadata) if metadata.is_dir() => self.check_mode("", &metadata).map(|()| true),
            Ok(_) => Err(StoreError::unavailable(&self.name, "it is no directory")),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.error("read", "", error)),
        }
    }

    fn check_mode(&self, path: &str, metadata: &Metadata) -> Result<(), StoreError> {
        if metadata.mode() & 0o002 == 0 {
            return Ok(());
        }
        let path = self.path(path);
        let path = path.display();
        Err(StoreError::unavailable(
            &self.name,
            format!("everybody may write `{path}`; `chmod o-w '{path}'` ends that"),
        ))
    }

    /// Returns what is at a path, without following a symbolic link.
    fn look(&self, path: &str) -> Result<Option<Metadata>, StoreError> {
        match fs::symlink_metadata(self.path(path)) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(self.error("read", path, error)),
        }
    }

    /// Returns the stamp of a document; `None` if there is none.
    pub(crate) fn stamp(&self, path: &str) -> Result<Option<Stamp>, StoreError> {
        let Some(metadata) = self.look(path)? else {
            return Ok(None);
        };
        if !metadata.is_file() {
            return Err(StoreError::corrupt(
                self.path(path).display().to_string(),
                "it is no plain file",
            ));
        }
        self.check_mode(path, &metadata)?;
        Ok(Some(Stamp::of(&metadata)))
    }

    /// Returns the names of the entries of a folder: of its folders, or of its other entries. None if there is no folder.
    pub(crate) fn entries(&self, path: &str, folders: bool) -> Result<Vec<String>, StoreError> {
        match self.look(path)? {
            None => return Ok(Vec::new()),
            Some(metadata) if !metadata.is_dir() => {
                return Err(StoreError::corrupt(
                    self.path(path).display().to_string(),
                    "it is no folder",
                ));
            }
            Some(metadata) => self.check_mode(path, &metadata)?,
        }
        let failed = |error| self.error("read", path, error);
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path(path)).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_type().map_err(failed)?.is_dir() == folders
                && let Ok(name) = entry.file_name().into_string()
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Reads a file that no symbolic link leads to; `None` if there is none.
    pub(crate) fn read(&self, path: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for end in ends {
            match self.look(&path[..end])? {
                None => return Ok(None),
                Some(metadata) if metadata.is_symlink() => {
                    let what = self.path(&path[..end]).display().to_string();
                    return Err(StoreError::corrupt(what, "it is a symbolic link"));
                }
                Some(_) => {}
            }
        }
        let read = || -> io::Result<Vec<u8>> {
            let mut content = Vec::new();
            File::open(self.path(path))?
                .take(MAX_FILE + 1)
                .read_to_end(&mut content)?;
            Ok(content)
        };
        let content = read().map_err(|error| self.error("read", path, error))?;
        if content.len() as u64 > MAX_FILE {
            let what = self.path(path).display().to_string();
            return Err(StoreError::corrupt(
                what,
                format!("it has more than {MAX_FILE} bytes"),
            ));
        }
        Ok(Some(content))
    }

    /// Passes a step of a change.
    fn step(&self) -> io::Result<()> {
        self.options.on_step.as_ref().map_or(Ok(()), |hook| hook())
    }

    fn change<T>(
        &self,
        what: &str,
        path: &str,
        change: impl FnOnce(&Path) -> io::Result<T>,
    ) -> Result<T, StoreError> {
        let changed = self.step().and_then(|()| change(&self.path(path)));
        changed.map_err(|error| self.error(what, path, error))
    }

    /// Creates a folder and those above it, unless it exists.
    pub(crate) fn create_folder(&self, path: &str) -> Result<(), StoreError> {
        if self.path(path).is_dir() {
            return Ok(());
        }
        self.change("created", path, |path| fs::create_dir_all(path))
    }

    /// Writes a new file to the disk.
    pub(crate) fn write(&self, path: &str, content: &[u8]) -> Result<(), StoreError> {
        self.change("written", path, |path| {
            let mut file = File::create(path)?;
            file.write_all(content)?;
            file.sync_all()
        })
    }

    /// Replaces a file at once.
    pub(crate) fn replace(&self, path: &str, content: &[u8]) -> Result<(), StoreError> {
        let written = format!("{LOCAL}/written");
        self.write(&written, content)?;
        self.rename(&written, path)?;
        self.sync_folder(path.rsplit_once('/').map_or("", |(folder, _)| folder))
    }

    /// Moves a file or a folder, and replaces what is there. A file is replaced at once.
    pub(crate) fn put(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let is_folder = |path| Ok::<_, StoreError>(self.look(path)?.is_some_and(|there| there.is_dir()));
        if is_folder(from)? || is_folder(to)? {
            self.remove(to)?;
        }
        self.rename(from, to)
    }

    /// Returns `true` if there is anything at a path.
    pub(crate) fn is_there(&self, path: &str) -> Result<bool, StoreError> {
        Ok(self.look(path)?.is_some())
    }

    /// As [`Disk::sync_folder`], for a folder that may have been removed.
    pub(crate) fn sync_folder_if_there(&self, path: &str) -> Result<(), StoreError> {
        match path.is_empty() || self.is_there(path)? {
            true => self.sync_folder(path),
            false => Ok(()),
        }
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), StoreError> {
        self.change("replaced", to, |path| fs::rename(self.path(from), path))
    }

    /// Removes a file, or a folder with all that is in it, if it exists.
    pub(crate) fn remove(&self, path: &str) -> Result<(), StoreError> {
        match self.look(path)? {
            None => Ok(()),
            Some(metadata) if metadata.is_dir() => {
                self.change("removed", path, |path| fs::remove_dir_all(path))
            }
            Some(_) => self.change("removed", path, |path| fs::remove_file(path)),
        }
    }

    /// Writes the names of a folder's entries to the disk.
    pub(crate) fn sync_folder(&self, path: &str) -> Result<(), StoreError> {
        self.change("written", path, |path| File::open(path)?.sync_all())
    }

    /// Waits for the lock of readers. Without one if the directory cannot be written, and nobody who can has used it.
    pub(crate) fn lock_shared(&self) -> Result<Access, StoreError> {
        let file = match self.open_lock() {
            Ok(file) => file,
            Err(error) if is_refused(&error) => match File::open(self.path(LOCK)) {
                Ok(file) => file,
                Err(_) => return Ok(Access { _lock: None }),
            },
            Err(error) => return Err(self.error("opened", LOCK, error)),
        };
        self.wait(&file, File::try_lock_shared)?;
        Ok(Access { _lock: Some(file) })
    }

    /// Waits for the lock of writers, and creates the directory if it does not exist. `None` if the directory cannot be
    /// written.
    pub(crate) fn lock_exclusive(&self) -> Result<Option<Access>, StoreError> {
        let create = || {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700).create(self.path(""))?;
            self.open_lock()
        };
        let file = match create() {
            Ok(file) => file,
            Err(error) if is_refused(&error) => return Ok(None),
            Err(error) => return Err(self.error("opened", LOCK, error)),
        };
        self.wait(&file, File::try_lock)?;
        Ok(Some(Access { _lock: Some(file) }))
    }

    fn open_lock(&self) -> io::Result<File> {
        let local = self.path(LOCAL);
        if local.is_symlink() {
            return Err(io::Error::new(
                ErrorKind::NotADirectory,
                "the folder is a symbolic link",
            ));
        }
        let ignore = local.join(".gitignore");
        if !ignore.exists() {
            fs::create_dir_all(&local)?;
            fs::write(ignore, "*\n")?;
        }
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.path(LOCK))
    }

    fn wait(&self, file: &File, lock: fn(&File) -> Result<(), TryLockError>) -> Result<(), StoreError> {
        let mut waited = Duration::ZERO;
        loop {
            match lock(file) {
                Ok(()) => return Ok(()),
                Err(TryLockError::Error(error)) => return Err(self.error("locked", LOCK, error)),
                Err(TryLockError::WouldBlock) if waited >= self.options.lock_timeout => {
                    let message = "another process holds the lock for longer than the time limit";
                    return Err(StoreError::unavailable(&self.name, message));
                }
                Err(TryLockError::WouldBlock) => thread::sleep(LOCK_PAUSE),
            }
            waited += LOCK_PAUSE;
        }
    }
}

fn is_refused(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
    )
}
