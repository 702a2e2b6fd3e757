//! Reading and writing of files that belong to other programs.

use std::{
    fs::{self, File, Metadata, OpenOptions, Permissions},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
};

use crate::error::CliError;

/// Maximum size of a client's file, in bytes.
const MAX_FILE: u64 = 16 << 20;
/// Ending of a backup beside the file.
const BACKUP: &str = "toolplane-backup";
/// Mode of a new file, of which the umask of the process takes its part.
const NEW_MODE: u32 = 0o666;
/// Maximum number of backups of a file.
const MAX_BACKUPS: u32 = 1000;

/// Text of a client's file, as it is before a change.
#[derive(Debug)]
pub(crate) struct TextFile {
    /// Path that the client opens.
    path: PathBuf,
    /// File that a symbolic link leads to, or the path.
    target: PathBuf,
    /// Text. `None` if there is no file.
    pub(crate) text: Option<String>,
    /// Owner and permissions. `None` if there is no file.
    metadata: Option<Metadata>,
}

impl TextFile {
    /// Reads a file. An absent one has no text.
    ///
    /// # Errors
    /// If it cannot be read, is too large, or is not UTF-8.
    pub(crate) fn read(path: &Path) -> Result<Self, CliError> {
        let target = match fs::canonicalize(path) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => {
                return Ok(Self {
                    path: path.to_owned(),
                    target: path.to_owned(),
                    text: None,
                    metadata: None,
                });
            }
            Err(error) => return Err(unreadable(path).with_source(&error)),
        };
        let metadata = fs::metadata(&target).map_err(|error| unreadable(path).with_source(&error))?;
        // Opening a named pipe would wait for a writer.
        if !metadata.is_file() {
            return Err(CliError::failed(format!(
                "`{}` is no regular file",
                path.display()
            )));
        }
        let text = read_text(&target).map_err(|error| unreadable(path).with_source(&error))?;
        Ok(Self {
            path: path.to_owned(),
            target,
            text: Some(text),
            metadata: Some(metadata),
        })
    }

    /// Writes the text as a backup beside the file, and returns its path. A backup with the same text is used again, and no
    /// backup is ever overwritten. `None` if there is no file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn back_up(&self) -> Result<Option<PathBuf>, CliError> {
        let Some(text) = &self.text else {
            return Ok(None);
        };
        let failed = |path: &Path, error: &io::Error| {
            CliError::failed(format!("the backup `{}` cannot be written", path.display())).with_source(error)
        };
        let newest = self.backups().next();
        if let Some((path, backup)) = newest.filter(|(_, backup)| backup == text) {
            drop(backup);
            return Ok(Some(path));
        }
        for number in 0..MAX_BACKUPS {
            let path = backup_path(&self.target, number);
            let mut file = match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(failed(&path, &error)),
            };
            let written = self
                .set_permissions(&file)
                .and_then(|()| file.write_all(text.as_bytes()));
            written
                .and_then(|()| file.sync_all())
                .map_err(|error| failed(&path, &error))?;
            return Ok(Some(path));
        }
        let message = format!("`{}` has {MAX_BACKUPS} backups", self.path.display());
        Err(CliError::failed(message).with_hint(format!(
            "remove old ones: `{}.*`",
            backup_path(&self.target, 0).display()
        )))
    }

    /// Returns the backups of the file, newest first.
    pub(crate) fn backups(&self) -> impl Iterator<Item = (PathBuf, String)> {
        let paths: Vec<PathBuf> = (0..MAX_BACKUPS)
            .map(|number| backup_path(&self.target, number))
            .take_while(|path| path.exists())
            .collect();
        let texts = paths.into_iter().rev();
        texts.filter_map(|path| read_text(&path).ok().map(|text| (path, text)))
    }

    /// Replaces the file by one with this text, with the owner and the permissions of the old one. Removes the file if the text is
    /// `None`.
    ///
    /// # Errors
    /// If the file was changed since it was read, is read-only, or cannot be written.
    pub(crate) fn replace(&self, text: Option<&str>) -> Result<(), CliError> {
        let failed = |error: &io::Error| {
            CliError::failed(format!("`{}` cannot be written", self.path.display())).with_source(error)
        };
        let directory = self
            .target
            .parent()
            .filter(|directory| !directory.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        self.check_writable()?;
        let Some(text) = text else {
            let _lock = lock(directory);
            self.check_unchanged()?;
            return fs::remove_file(&self.target).map_err(|error| failed(&error));
        };
        fs::create_dir_all(directory).map_err(|error| failed(&error))?;
        let mut temporary = tempfile::Builder::new()
            .prefix(".toolplane-")
            .permissions(Permissions::from_mode(NEW_MODE))
            .tempfile_in(directory)
            .map_err(|error| failed(&error))?;
        let written = temporary
            .write_all(text.as_bytes())
            .and_then(|()| self.set_permissions(temporary.as_file()))
            .and_then(|()| temporary.as_file().sync_all());
        written.map_err(|error| failed(&error))?;
        let _lock = lock(directory);
        self.check_unchanged()?;
        temporary
            .persist(&self.target)
            .map_err(|error| failed(&error.error))?;
        // The rename is durable after the directory is. Not every file system can do that.
        let _ = File::open(directory).and_then(|directory| directory.sync_all());
        Ok(())
    }

    /// Checks that the file is not read-only.
    ///
    /// # Errors
    /// If it is.
    pub(crate) fn check_writable(&self) -> Result<(), CliError> {
        let mut metadata = self.metadata.iter();
        match metadata.any(|metadata| metadata.permissions().readonly()) {
            false => Ok(()),
            true => Err(
                CliError::failed(format!("`{}` is read-only", self.path.display()))
                    .with_hint("allow writing with `chmod u+w`"),
            ),
        }
    }

    fn set_permissions(&self, file: &File) -> io::Result<()> {
        let Some(old) = &self.metadata else {
            return Ok(());
        };
        let new = file.metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            // Only an administrator may give files away, and only they write those of others.
            let _ = fchown(file, Some(old.uid()), Some(old.gid()));
        }
        file.set_permissions(old.permissions())
    }

    /// Checks that nobody wrote the file meanwhile: clients save their settings at any time.
    fn check_unchanged(&self) -> Result<(), CliError> {
        let now = match read_text(&self.target) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(unreadable(&self.path).with_source(&error)),
        };
        match now == self.text {
            true => Ok(()),
            false => Err(
                CliError::failed(format!("`{}` was changed meanwhile", self.path.display()))
                    .with_hint("run the command again"),
            ),
        }
    }
}

/// Locks a directory against other processes of this program, until the returned file is closed: a check and a change are one step.
/// A file system without locks has none.
fn lock(directory: &Path) -> Option<File> {
    let file = File::open(directory).ok()?;
    file.lock().ok()?;
    Some(file)
}

/// Removes the directories between `base` and a removed file, as long as they are empty.
pub(crate) fn remove_empty_directories(file: &Path, base: &Path) {
    let directories = file.ancestors().skip(1);
    let below = directories.take_while(|directory| *directory != base);
    for directory in below.filter(|directory| directory.starts_with(base)) {
        if fs::remove_dir(directory).is_err() {
            return;
        }
    }
}

fn unreadable(path: &Path) -> CliError {
    CliError::failed(format!("`{}` cannot be read", path.display()))
}

fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_FILE + 1).read_to_string(&mut text)?;
    match text.len() as u64 > MAX_FILE {
        true => Err(io::Error::other(format!("it is larger than {MAX_FILE} bytes"))),
        false => Ok(text),
    }
}

/// Returns the path of a backup: `FILE.toolplane-backup`, then `FILE.toolplane-backup.1` and so on.
fn backup_path(file: &Path, number: u32) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(format!(".{BACKUP}"));
    if number > 0 {
        path.push(format!(".{number}"));
    }
    path.into()
}
