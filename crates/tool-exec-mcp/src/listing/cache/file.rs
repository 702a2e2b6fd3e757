use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::available_parallelism,
};

use tokio::task::spawn_blocking;
use tool_core::{BoxFuture, outward_name};

use super::{CachedLists, ListCache, ListCacheKey, PrivateFolder, format, private_folder::ignore_missing};

/// [`ListCache`] in a directory of its own, with one file for each server and configuration.
///
/// The lists decide what agents see, so the directory and the files must belong to the user of this process alone: the
/// directory has mode 0700 and the files 0600. A file that is corrupt, too large, a link, of another user or of another
/// mode is ignored, and the server is asked. Files are replaced as a whole, by renaming.
///
/// # Examples
/// ```
/// use tool_exec_mcp::FileListCache;
///
/// let cache = FileListCache::new("/var/cache/toolplane/lists");
/// assert!(cache.folder().ends_with("lists"));
/// ```
#[derive(Debug, Clone)]
pub struct FileListCache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PrivateFolder,
    /// Number of lists saved.
    n_saved: AtomicU64,
}

/// Maximum size of one file, in bytes. Larger lists are not stored.
const MAX_BYTES: u64 = 16 << 20;
/// Maximum number of files. The oldest are deleted first.
const MAX_FILES: usize = 2000;
/// Number of lists saved between two sweeps.
const SWEEP: u64 = 100;
/// Maximum number of threads that read files.
const MAX_THREADS: usize = 4;
/// Suffix of files.
const ENDING: &str = ".json";
/// Number of digits of the digest in a file name. The file holds the whole digest.
const DIGITS: usize = 16;

impl FileListCache {
    /// A cache in this directory, which is created when first needed.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Inner {
            folder: PrivateFolder::new(folder),
            n_saved: AtomicU64::new(0),
        }))
    }

    /// The directory of the files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.0.folder.path()
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
            // The results of a part that panicked are missing.
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
                tracing::warn!(server = key.server(), %error, "the lists of a server cannot be stored");
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
        match self.folder.check() {
            Ok(()) => keys.iter().map(|key| self.load_one(key)).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => vec![None; keys.len()],
            Err(error) => {
                tracing::warn!(%error, "cached lists are not used");
                vec![None; keys.len()]
            }
        }
    }

    fn load_one(&self, key: &ListCacheKey) -> Option<CachedLists> {
        let name = file_name(key);
        let path = || self.folder.path().join(&name);
        let text = match self.folder.read(&name, MAX_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(path = %path().display(), %error, "a cached list is ignored");
                return None;
            }
        };
        match format::read(key, text) {
            Ok(lists) => Some(lists),
            Err(reason) => {
                tracing::warn!(path = %path().display(), "a cached list is ignored: {reason}");
                None
            }
        }
    }

    fn save(&self, key: &ListCacheKey, lists: &CachedLists) -> io::Result<()> {
        let text = format::write(key, lists);
        let name = file_name(key);
        if text.len() as u64 > MAX_BYTES {
            tracing::debug!(
                server = key.server(),
                "the lists of a server are too large to be stored"
            );
            // The stored lists are no longer those of the server.
            return ignore_missing(fs::remove_file(self.folder.path().join(name)));
        }
        self.folder.replace(&name, &text)?;
        if self.n_saved.fetch_add(1, Ordering::Relaxed).is_multiple_of(SWEEP) {
            self.sweep(MAX_FILES)?;
        }
        Ok(())
    }

    fn sweep(&self, max_files: usize) -> io::Result<()> {
        self.folder.sweep(max_files, |name| server_of(name).is_some())
    }

    fn forget(&self, server: Option<&str>) -> io::Result<usize> {
        match self.folder.check() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            checked => checked?,
        }
        let mut n_forgotten = 0;
        for entry in fs::read_dir(self.folder.path())? {
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
}

/// Returns the name of the file of a key.
fn file_name(key: &ListCacheKey) -> String {
    format!(
        "{}-{}{ENDING}",
        outward_name(key.server()),
        &key.digest()[..DIGITS]
    )
}

/// Returns the outward name of the server whose lists are in the file of this name, or `None` if the file is not a
/// list.
fn server_of(name: &str) -> Option<&str> {
    let (server, digest) = name.strip_suffix(ENDING)?.rsplit_once('-')?;
    let is_digest = digest.len() == DIGITS && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then_some(server)
}

#[cfg(test)]
mod tests;
