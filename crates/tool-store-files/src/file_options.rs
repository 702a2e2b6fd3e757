use std::{fmt, io, path::PathBuf, sync::Arc, time::Duration};

/// Options of a store in files.
#[derive(Clone)]
#[non_exhaustive]
pub struct FileStoreOptions {
    /// Directory of the store.
    pub directory: PathBuf,
    /// Time for which a reader or a writer waits for the lock. Default: 10 s.
    pub lock_timeout: Duration,
    /// Interval at which changes of other processes of this program are looked for. Default: 250 ms.
    pub poll_interval: Duration,
    /// Interval at which edits by other programs are looked for: every document is looked at. Default: 2 s.
    pub scan_interval: Duration,
    /// Called before every change of the file system: for tests of crashes.
    #[doc(hidden)]
    pub on_step: Option<Arc<dyn Fn() -> io::Result<()> + Send + Sync>>,
}

impl FileStoreOptions {
    /// Names the directory.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            lock_timeout: Duration::from_secs(10),
            poll_interval: Duration::from_millis(250),
            scan_interval: Duration::from_secs(2),
            on_step: None,
        }
    }

    /// Sets the time for which a reader or a writer waits for the lock.
    #[must_use]
    pub fn with_lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Sets the interval at which changes of other processes of this program are looked for.
    #[must_use]
    pub fn with_poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval;
        self
    }

    /// Sets the interval at which edits by other programs are looked for.
    #[must_use]
    pub fn with_scan_interval(mut self, interval: Duration) -> Self {
        self.scan_interval = interval;
        self
    }
}

impl fmt::Debug for FileStoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStoreOptions")
            .field("directory", &self.directory)
            .field("lock_timeout", &self.lock_timeout)
            .field("poll_interval", &self.poll_interval)
            .field("scan_interval", &self.scan_interval)
            .finish_non_exhaustive()
    }
}
