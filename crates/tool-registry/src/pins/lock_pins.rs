use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use raw_json::RawJson;
use tokio::task::spawn_blocking;
use tool_core::BoxFuture;

use super::{LockFile, MemoryPins, Pin, PinSet, Pins, PinsError};

/// Replaces secrets in a definition. Returns `None` if it contains none.
type Redact = dyn Fn(&RawJson) -> Option<RawJson> + Send + Sync;

/// [`Pins`] in a [`LockFile`]. Accepted definitions are written to it; those of first use are in memory only, since people
/// review the file.
#[derive(Clone)]
pub struct LockFilePins(Arc<Inner>);

struct Inner {
    path: PathBuf,
    /// Pins of the file, and those of first use that it does not have.
    all: MemoryPins,
    state: Mutex<State>,
    redact: OnceLock<Box<Redact>>,
    /// `true` if a missing file is created.
    creates: AtomicBool,
}

struct State {
    /// Content of the file as it was last read or written.
    file: LockFile,
    /// Definitions of first use, and accepted ones without a file.
    unwritten: PinSet,
}

impl LockFilePins {
    /// Makes a storage of a file that was read. A file that does not exist yet is created by the first accepted definition.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, file: LockFile) -> Self {
        Self(Arc::new(Inner {
            path: path.into(),
            all: MemoryPins::new(file.pins()),
            state: Mutex::new(State {
                file,
                unwritten: PinSet::default(),
            }),
            redact: OnceLock::new(),
            creates: AtomicBool::new(true),
        }))
    }

    /// Makes a storage of a file that it reads.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a lock file. A missing file is an empty one.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, PinsError> {
        let path = path.into();
        let file = LockFile::read(&path)?.unwrap_or_default();
        Ok(Self::new(path, file))
    }

    /// Sets the function that replaces secrets in the texts of written definitions, once. It returns `None` if there are none.
    #[must_use]
    pub fn with_redaction(
        self,
        redact: impl Fn(&RawJson) -> Option<RawJson> + Send + Sync + 'static,
    ) -> Self {
        // The first function stays.
        let _ = self.0.redact.set(Box::new(redact));
        self
    }

    /// Keeps accepted definitions in memory as long as there is no file.
    #[must_use]
    pub fn without_creation(self) -> Self {
        self.0.creates.store(false, Ordering::Relaxed);
        self
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns the content of the file as it was last read or written.
    #[must_use]
    pub fn file(&self) -> LockFile {
        self.0.known()
    }
}

impl Inner {
    /// Replaces the pins by those of this file. Returns `true` if the file has changed.
    fn adopt(&self, file: LockFile) -> bool {
        let mut state = self.state.lock();
        if state.file == file {
            return false;
        }
        let mut all = file.pins();
        for pin in state.unwritten.iter() {
            let key = pin.key();
            if all.get(&key.source, key.feature, &key.name).is_none() {
                all.insert(pin.clone());
            }
        }
        state.file = file;
        self.all.change(|set| *set = all);
        true
    }

    /// Reads the file again. Returns `true` if it has changed. If a file that was there is gone, the pins stay: nothing that is
    /// withheld is offered because a file is replaced, or was deleted by mistake.
    fn read_again(&self) -> Result<bool, PinsError> {
        match LockFile::read(&self.path)? {
            Some(file) => Ok(self.adopt(file)),
            None if self.known() == LockFile::default() => Ok(false),
            None => Err(PinsError::Read {
                place: self.path.display().to_string(),
                reason: "the file is gone".to_owned(),
            }),
        }
    }

    /// Returns the content of the file as it was last read or written.
    fn known(&self) -> LockFile {
        self.state.lock().file.clone()
    }

    /// Adds pins to the file as it is now, so that the changes of others stay. A file that is gone is written anew.
    fn write(&self, pins: Vec<Pin>) -> Result<(), PinsError> {
        let mut file = match LockFile::read(&self.path)? {
            Some(file) => file,
            None => self.known(),
        };
        if file == LockFile::default() && !self.creates.load(Ordering::Relaxed) {
            let mut state = self.state.lock();
            self.all.change(|set| {
                for pin in pins.into_iter().map(Arc::new) {
                    set.insert(pin.clone());
                    state.unwritten.insert(pin);
                }
            });
            return Ok(());
        }
        for pin in pins {
            file.insert(self.without_secrets(pin));
        }
        file.write(&self.path)?;
        self.adopt(file);
        Ok(())
    }

    fn without_secrets(&self, pin: Pin) -> Pin {
        let redact = self.redact.get();
        let shown = redact
            .zip(pin.definition())
            .and_then(|(redact, definition)| redact(definition));
        match shown {
            Some(shown) => pin.with_shown_definition(shown),
            None => pin,
        }
    }
}

impl Pins for LockFilePins {
    fn snapshot(&self) -> Arc<PinSet> {
        self.0.all.snapshot()
    }

    fn add_first_used(&self, pins: Vec<Pin>) {
        let mut state = self.0.state.lock();
        self.0.all.change(|set| {
            for pin in pins {
                let pin = Arc::new(pin);
                let key = pin.key();
                if set.get(&key.source, key.feature, &key.name).is_none() {
                    set.insert(pin.clone());
                    state.unwritten.insert(pin);
                }
            }
        });
    }

    fn accept(&self, pins: Vec<Pin>) -> BoxFuture<'_, Result<(), PinsError>> {
        let inner = self.0.clone();
        Box::pin(async move { blocking(&self.0.path, move || inner.write(pins)).await })
    }

    fn refresh(&self) -> BoxFuture<'_, Result<bool, PinsError>> {
        let inner = self.0.clone();
        Box::pin(async move { blocking(&self.0.path, move || inner.read_again()).await })
    }
}

/// Runs work on files on a thread for blocking work. It is not cancelled.
async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> Result<T, PinsError> + Send + 'static,
) -> Result<T, PinsError> {
    spawn_blocking(work).await.unwrap_or_else(|failure| {
        Err(PinsError::Read {
            place: path.display().to_string(),
            reason: failure.to_string(),
        })
    })
}

impl fmt::Debug for LockFilePins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockFilePins")
            .field("path", &self.0.path)
            .finish_non_exhaustive()
    }
}
