use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::available_parallelism,
    time::{Duration, SystemTime},
};

use rustix::fs::OFlags;
use tokio::task::spawn_blocking;
use tool_core::{BoxFuture, outward_name};

use super::{CachedLists, ListCacheKey, ListCache, format};

/// A [`ListCache`] in a directory of its own: one file for each server and configuration.
///
/// The lists decide what agents are shown, so the directory and the files must belong to the user of this process and to
/// nobody else: the directory has mode 0700 and the files 0600. A file that is corrupt, too large, a link, of another user
/// or of another mode is ignored, and the server is asked. Files are replaced whole, by renaming.
#[derive(Debug, Clone)]
pub struct FileListCache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    /// How many files were written, by which temporary names differ.
    n_written: AtomicU64,
}

/// Maximum size of one file, in bytes. Larger lists are not kept.
const MAX_BYTES: u64 = 16 << 20;
/// Maximum number of files. The oldest are deleted first.
const MAX_FILES: usize = 2000;
/// How many files are written from one look at the number of files to the next.
const SWEEP: u64 = 100;
/// How old a file must be that nobody finished writing before it is deleted.
const ABANDONED: Duration = Duration::from_secs(3600);
/// How many threads read files at the same time at most.
const MAX_THREADS: usize = 4;
/// How files end, and those that are being written.
const ENDING: &str = ".json";
const UNFINISHED: &str = ".tmp";
/// How many digits of the digest are in the name of a file. The whole digest is inside.
const DIGITS: usize = 16;

impl FileListCache {
    /// A store in this directory, which is created when first needed.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Inner {
            folder: folder.into(),
            n_written: AtomicU64::new(0),
        }))
    }

    /// The directory of the files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }
}

impl ListCache for FileListCache {
    /// Reads and parses on threads for blocking work.
    fn load<'a>(&'a self, keys: &'a [ListCacheKey]) -> BoxFuture<'a, Vec<Option<CachedLists>>> {
        Box::pin(async move {
            let n_threads = available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
            let part = keys.len().div_ceil(n_threads).max(1);
            let parts: Vec<_> = keys
                .chunks(part)
                .map(|keys| {
                    let (inner, keys) = (Arc::clone(&self.0), keys.to_vec());
                    spawn_blocking(move || inner.load(&keys))
                })
                .collect();
            let mut all = Vec::with_capacity(keys.len());
            for part in parts {
                all.extend(part.await.unwrap_or_default());
            }
            // A part that panicked is missing.
            all.resize(keys.len(), None);
            all
        })
    }

    fn save(&self, key: ListCacheKey, lists: CachedLists) -> BoxFuture<'_, ()> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let saved = spawn_blocking(move || {
                let saved = inner.save(&key, &lists);
                (key, saved)
            });
            if let Ok((key, Err(error))) = saved.await {
                tracing::warn!(server = key.server(), %error, "the lists of a server cannot be kept");
            }
        })
    }

    fn forget<'a>(&'a self, server: Option<&'a str>) -> BoxFuture<'a, io::Result<usize>> {
        let (inner, server) = (Arc::clone(&self.0), server.map(str::to_owned));
        Box::pin(async move {
            let forgotten = spawn_blocking(move || inner.forget(server.as_deref()));
            forgotten.await.map_err(io::Error::other)?
        })
    }
}

impl Inner {
    fn load(&self, keys: &[ListCacheKey]) -> Vec<Option<CachedLists>> {
        match check_folder(&self.folder) {
            Ok(()) => keys.iter().map(|key| self.load_one(key)).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => vec![None; keys.len()],
            Err(error) => {
                tracing::warn!(%error, "no kept lists are used");
                vec![None; keys.len()]
            }
        }
    }

    fn load_one(&self, key: &ListCacheKey) -> Option<CachedLists> {
        let path = self.folder.join(file_name(key));
        let text = match read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a kept list is ignored");
                return None;
            }
        };
        match format::read(key, text) {
            Ok(lists) => Some(lists),
            Err(reason) => {
                tracing::warn!(path = %path.display(), "a kept list is ignored: {reason}");
                None
            }
        }
    }

    fn save(&self, key: &ListCacheKey, lists: &CachedLists) -> io::Result<()> {
        let text = format::write(key, lists);
        let path = self.folder.join(file_name(key));
        if text.len() as u64 > MAX_BYTES {
            tracing::debug!(
                server = key.server(),
                "the lists of a server are too large to be kept"
            );
            // Those from before are not its lists any more.
            return ignore_missing(fs::remove_file(path));
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        check_folder(&self.folder)?;
        let n_written = self.n_written.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{n_written}{UNFINISHED}", std::process::id());
        let unfinished = self.folder.join(name);
        let written = write(&unfinished, &text).and_then(|()| fs::rename(&unfinished, path));
        if written.is_err() {
            // It may not even be there.
            let _ = fs::remove_file(&unfinished);
        }
        if n_written.is_multiple_of(SWEEP) {
            self.sweep(MAX_FILES)?;
        }
        written
    }

    fn forget(&self, server: Option<&str>) -> io::Result<usize> {
        match check_folder(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            checked => checked?,
        }
        let mut n_forgotten = 0;
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(of) = name.to_str().and_then(server_of) else {
                continue;
            };
            if server.is_none_or(|server| outward_name(server) == of) {
                ignore_missing(fs::remove_file(entry.path()))?;
                n_forgotten += 1;
            }
        }
        Ok(n_forgotten)
    }

    /// Deletes the oldest files beyond the maximum, and those that nobody finished writing.
    fn sweep(&self, max_files: usize) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            // Others sweep as well.
            let Ok(modified) = entry.metadata().and_then(|metadata| metadata.modified()) else {
                continue;
            };
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let age = SystemTime::now().duration_since(modified).unwrap_or_default();
            if server_of(&name).is_some() {
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

/// The name of the file of a key.
fn file_name(key: &ListCacheKey) -> String {
    format!(
        "{}-{}{ENDING}",
        outward_name(key.server()),
        &key.digest()[..DIGITS]
    )
}

/// The outward name of the server whose lists are in the file of this name; `None` for a file that is not a list.
fn server_of(name: &str) -> Option<&str> {
    let (server, digest) = name.strip_suffix(ENDING)?.rsplit_once('-')?;
    let is_digest = digest.len() == DIGITS && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then_some(server)
}

/// Checks that nobody else can put files into the directory.
fn check_folder(folder: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(folder)?;
    check_owner(&metadata, metadata.is_dir(), folder)
}

fn check_owner(metadata: &fs::Metadata, is_expected: bool, path: &Path) -> io::Result<()> {
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if is_expected && is_ours && metadata.mode() & 0o077 == 0 {
        return Ok(());
    }
    let message = format!("`{}` does not belong to this user alone", path.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// Reads a file that must belong to this user alone.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    // A pipe in the place of a file must not hold us up.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let metadata = file.metadata()?;
    check_owner(&metadata, metadata.is_file(), path)?;
    let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, "it is too large");
    if metadata.len() > MAX_BYTES {
        return Err(too_large());
    }
    let mut text = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
    file.take(MAX_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(too_large());
    }
    Ok(text)
}

/// Writes a file that was not there.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file: File = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)?;
    file.write_all(text.as_bytes())
}

fn ignore_missing(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests;
