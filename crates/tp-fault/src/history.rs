use std::{
    collections::VecDeque,
    fmt,
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::Path,
    sync::Arc,
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{Direction, Fault};

/// History of events, oldest first; clones share it. The newest 65,536 entries are kept in memory, a file has all.
#[derive(Clone)]
pub struct History(Arc<Inner>);

struct Inner {
    start: Instant,
    entries: Mutex<VecDeque<HistoryEntry>>,
    file: Option<Mutex<File>>,
}

/// An event with its time and exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    /// Time since the start of the history.
    pub at: Duration,
    /// Number of the exchange, from 0.
    pub exchange: u64,
    /// The event.
    pub event: FaultEvent,
}

/// An event of an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultEvent {
    /// A wrapped program was started, or would have been.
    Started,
    /// A request arrived; over plain TCP a connection.
    Request {
        /// Size of the request, in bytes.
        bytes: usize,
    },
    /// This fault was applied.
    Met(Fault),
    /// The first byte of the answer arrived.
    Answering,
    /// The exchange was cut.
    Cut {
        /// Cut direction.
        direction: Direction,
        /// Number of forwarded bytes.
        after: u64,
    },
    /// The client closed its connection.
    Left,
    /// The upstream is unreachable.
    Unreachable,
    /// The upstream, or the wrapped program, ended.
    Ended,
    /// An execution counter executed this id.
    Executed(String),
}

/// Maximum number of entries in memory.
const KEPT: usize = 64 * 1024;

impl Default for History {
    fn default() -> Self {
        Self::new(None)
    }
}

impl History {
    fn new(file: Option<File>) -> Self {
        Self(Arc::new(Inner {
            start: Instant::now(),
            entries: Mutex::default(),
            file: file.map(Mutex::new),
        }))
    }

    /// Creates a history that is also appended to a file, one JSON object on each line.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn to_file(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self::new(Some(file)))
    }

    /// Returns all entries.
    #[must_use]
    pub fn entries(&self) -> Vec<HistoryEntry> {
        self.lock().iter().cloned().collect()
    }

    /// Returns the number of entries whose event satisfies a predicate.
    #[must_use]
    pub fn count(&self, is_wanted: impl Fn(&FaultEvent) -> bool) -> usize {
        self.lock().iter().filter(|entry| is_wanted(&entry.event)).count()
    }

    /// Returns the maximum number of requests that waited for their answers at the same time.
    #[must_use]
    pub fn max_concurrent_requests(&self) -> usize {
        let (mut waiting, mut most) = (Vec::new(), 0);
        for entry in self.lock().iter() {
            match entry.event {
                FaultEvent::Request { .. } => waiting.push(entry.exchange),
                FaultEvent::Answering | FaultEvent::Cut { .. } | FaultEvent::Left | FaultEvent::Ended => {
                    waiting.retain(|exchange| *exchange != entry.exchange);
                }
                _ => {}
            }
            most = most.max(waiting.len());
        }
        most
    }

    /// Clears the entries in memory.
    pub fn clear(&self) {
        self.lock().clear();
    }

    pub(crate) fn add(&self, exchange: u64, event: FaultEvent) {
        let at = self.0.start.elapsed();
        let entry = HistoryEntry { at, exchange, event };
        if let Some(file) = &self.0.file {
            // One write, so that lines of several programs do not mix.
            let line = format!("{}\n", entry.to_json());
            let mut file = file.lock();
            // A full disk must not change the behavior.
            let _ = file.write_all(line.as_bytes());
        }
        let mut entries = self.lock();
        if entries.len() >= KEPT {
            entries.pop_front();
        }
        entries.push_back(entry);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<HistoryEntry>> {
        self.0.entries.lock()
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.lock().iter()).finish()
    }
}

impl HistoryEntry {
    /// Returns the entry as a file holds it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let at_ms = self.at.as_secs_f64() * 1000.0;
        let mut json = json!({"at_ms": at_ms, "exchange": self.exchange, "event": self.event.name()});
        match &self.event {
            FaultEvent::Request { bytes } => json["bytes"] = json!(bytes),
            FaultEvent::Met(fault) => json["fault"] = json!(fault.to_string()),
            FaultEvent::Cut { direction, after } => {
                json["way"] = json!(direction.to_string());
                json["after"] = json!(after);
            }
            FaultEvent::Executed(id) => json["id"] = json!(id),
            FaultEvent::Started
            | FaultEvent::Answering
            | FaultEvent::Left
            | FaultEvent::Unreachable
            | FaultEvent::Ended => {}
        }
        json
    }
}

impl FaultEvent {
    /// Returns the event's name in files.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Request { .. } => "request",
            Self::Met(_) => "met",
            Self::Answering => "answering",
            Self::Cut { .. } => "cut",
            Self::Left => "left",
            Self::Unreachable => "unreachable",
            Self::Ended => "ended",
            Self::Executed(_) => "executed",
        }
    }
}
