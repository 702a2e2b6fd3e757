use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use raw_json::{RawJson, canonical};
use tool_core::Feature;

use super::{Pin, PinKey, PinSet, PinsError, lock_format};

/// Maximum size of a lock file, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// Content of a `toolplane.lock`: the accepted definitions of all sources, the identity of each server, and the digests of what
/// was installed from catalogs.
///
/// The text is JSON, indented and sorted, so that a change of one definition is a change of a few lines that people review. It
/// contains the definitions, and a SHA-256 of each. A definition whose text does not fit its digest makes the file unusable.
///
/// # Examples
/// ```
/// use raw_json::RawJson;
/// use tool_core::Feature;
/// use tool_registry::{LockFile, Pin, PinKey};
///
/// let definition = RawJson::parse(r#"{"name":"read","description":"Reads."}"#)?;
/// let mut lock = LockFile::default();
/// lock.insert(Pin::new(PinKey::new("files", Feature::Tool, "read"), definition));
/// let text = lock.to_text();
/// assert!(text.contains(r#""description": "Reads.""#));
/// assert_eq!(LockFile::parse(&text)?, lock);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LockFile {
    pub(super) sources: BTreeMap<Arc<str>, LockedSource>,
    /// Digests by the kind and by `NAME@VERSION`.
    pub(super) installed: BTreeMap<(InstalledKind, Arc<str>), [u8; 32]>,
}

/// Kind of what was installed from a catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum InstalledKind {
    /// Server.
    Server,
    /// Version of a tool.
    Tool,
}

/// Accepted definitions of one source.
#[derive(Debug, Clone, Default)]
pub(super) struct LockedSource {
    /// Identity of a server, in canonical form.
    pub(super) server: Option<RawJson>,
    pub(super) pins: BTreeMap<(Feature, Arc<str>), Arc<Pin>>,
}

impl PartialEq for LockedSource {
    fn eq(&self, other: &Self) -> bool {
        let text = |source: &Self| source.server.as_ref().map(|server| server.as_str().to_owned());
        text(self) == text(other) && self.pins == other.pins
    }
}

impl LockFile {
    /// Reads a file. Returns `None` if there is none.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a lock file.
    pub fn read(path: &Path) -> Result<Option<Self>, PinsError> {
        let error = |reason: String| PinsError::Read {
            place: path.display().to_string(),
            reason,
        };
        let text = match fs::metadata(path) {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(other) => return Err(error(other.to_string())),
            Ok(metadata) if metadata.len() > MAX_BYTES => {
                return Err(error(format!("it is larger than {MAX_BYTES} bytes")));
            }
            Ok(_) => fs::read_to_string(path).map_err(|failure| error(failure.to_string()))?,
        };
        Self::parse(&text).map(Some).map_err(|unusable| match unusable {
            PinsError::Read { reason, .. } => error(reason),
            other => other,
        })
    }

    /// Parses the text of a lock file.
    ///
    /// # Errors
    /// If the text is not JSON, has another structure, or a definition does not fit its digest.
    pub fn parse(text: &str) -> Result<Self, PinsError> {
        lock_format::parse(text).map_err(|reason| PinsError::Read {
            place: "a lock file".to_owned(),
            reason,
        })
    }

    /// Returns the text of the file: equal for equal content.
    #[must_use]
    pub fn to_text(&self) -> String {
        lock_format::render(self)
    }

    /// Writes the file, by replacing it as a whole.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), PinsError> {
        let error = |failure: &io::Error| PinsError::Write {
            place: path.display().to_string(),
            reason: failure.to_string(),
        };
        let temporary = temporary(path);
        let written = write_new(&temporary, &self.to_text()).and_then(|()| fs::rename(&temporary, path));
        written.map_err(|failure| {
            // Nothing more can be done about a file that cannot be removed either.
            let _ = fs::remove_file(&temporary);
            error(&failure)
        })
    }

    /// Returns the pins as a set.
    #[must_use]
    pub fn pins(&self) -> PinSet {
        let mut set = PinSet::default();
        for pin in self.iter() {
            set.insert(pin.clone());
        }
        set
    }

    /// Iterates over all pins, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Pin>> {
        self.sources.values().flat_map(|source| source.pins.values())
    }

    /// Returns the pin of an entry.
    #[must_use]
    pub fn get(&self, key: &PinKey) -> Option<&Arc<Pin>> {
        let source = self.sources.get(&key.source)?;
        source.pins.get(&(key.feature, key.name.clone()))
    }

    /// Sets the pin of an entry.
    pub fn insert(&mut self, pin: impl Into<Arc<Pin>>) {
        let pin = pin.into();
        let PinKey {
            source,
            feature,
            name,
        } = pin.key().clone();
        let source = self.sources.entry(source).or_default();
        source.pins.insert((feature, name), pin);
    }

    /// Removes the pin of an entry.
    pub fn remove(&mut self, key: &PinKey) {
        if let Some(source) = self.sources.get_mut(&key.source) {
            source.pins.remove(&(key.feature, key.name.clone()));
        }
    }

    /// Iterates over the names of the sources, in the order of the file.
    pub fn sources(&self) -> impl Iterator<Item = &Arc<str>> {
        self.sources.keys()
    }

    /// Removes a source with all of its pins.
    pub fn remove_source(&mut self, source: &str) {
        self.sources.remove(source);
    }

    /// Returns the identity of a server: a JSON object with its command or URL.
    #[must_use]
    pub fn server(&self, source: &str) -> Option<&RawJson> {
        self.sources.get(source)?.server.as_ref()
    }

    /// Returns the digest with which `NAME@VERSION` was installed from a catalog.
    #[must_use]
    pub fn installed(&self, kind: InstalledKind, version: &str) -> Option<&[u8; 32]> {
        self.installed.get(&(kind, version.into()))
    }

    /// Pins the digest with which `NAME@VERSION` was installed from a catalog.
    pub fn set_installed(&mut self, kind: InstalledKind, version: impl Into<Arc<str>>, digest: [u8; 32]) {
        self.installed.insert((kind, version.into()), digest);
    }

    /// Iterates over what was installed from catalogs: its kind, `NAME@VERSION` and its digest, in the order of the file.
    pub fn all_installed(&self) -> impl Iterator<Item = (InstalledKind, &str, &[u8; 32])> {
        let installed = self.installed.iter();
        installed.map(|((kind, version), digest)| (*kind, &**version, digest))
    }

    /// Takes over the digests of what was installed from another lock file.
    #[must_use]
    pub fn with_installed_of(mut self, other: &Self) -> Self {
        self.installed.clone_from(&other.installed);
        self
    }

    /// Returns `true` if the file has no definitions and no servers, so that it pins at most what was installed.
    #[must_use]
    pub fn has_no_sources(&self) -> bool {
        self.sources.is_empty()
    }

    /// Sets the identity of a server: a JSON object with its command or URL, without secrets.
    pub fn set_server(&mut self, source: impl Into<Arc<str>>, server: &RawJson) {
        let server = RawJson::parse(canonical(server)).ok();
        self.sources.entry(source.into()).or_default().server = server;
    }
}

/// Number of files written by this process, which makes temporary names unique.
static N_WRITTEN: AtomicU64 = AtomicU64::new(0);

fn temporary(path: &Path) -> PathBuf {
    let number = N_WRITTEN.fetch_add(1, Ordering::Relaxed);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}-{number}.tmp", process::id()));
    path.with_file_name(name)
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
