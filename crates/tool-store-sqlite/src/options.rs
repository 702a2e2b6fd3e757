use std::{path::PathBuf, time::Duration};

/// Options of an SQLite store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SqliteOptions {
    /// File of the database.
    pub path: PathBuf,
    /// Time for which a writer waits for another process that writes. Default: 10 s.
    pub busy_timeout: Duration,
    /// Interval at which changes of other processes are looked for. Default: 250 ms.
    pub poll_interval: Duration,
    /// Maximum number of connections that read, beside the one that watches for changes, which reads as well. Default: 4.
    pub max_readers: u32,
    /// `false` leaves the tables as they are: for tests of migrations.
    #[doc(hidden)]
    pub migrates: bool,
}

impl SqliteOptions {
    /// Names the file of the database.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            busy_timeout: Duration::from_secs(10),
            poll_interval: Duration::from_millis(250),
            max_readers: 4,
            migrates: true,
        }
    }

    /// Sets the time for which a writer waits for another process that writes.
    #[must_use]
    pub fn with_busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// Sets the interval at which changes of other processes are looked for.
    #[must_use]
    pub fn with_poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval;
        self
    }
}
