use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use foldhash::fast::RandomState;
use raw_json::RawJson;
use tool_core::Feature;

/// Identifies a definition: its source, its kind, and its name or URI at the source. An operator's prefix and new names do not
/// matter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct PinKey {
    /// Name of the source.
    pub source: Arc<str>,
    /// Kind of the entry.
    pub feature: Feature,
    /// Name of a tool or prompt at its source, URI of a resource, or URI template.
    pub name: Arc<str>,
}

impl PinKey {
    /// Creates the key of an entry of a source.
    #[must_use]
    pub fn new(source: impl Into<Arc<str>>, feature: Feature, name: impl Into<Arc<str>>) -> Self {
        Self {
            source: source.into(),
            feature,
            name: name.into(),
        }
    }
}

/// Accepted definition of a tool, prompt, resource or resource template.
#[derive(Clone)]
pub struct Pin {
    key: PinKey,
    /// SHA-256 of the canonical form, computed when it is first needed.
    digest: OnceLock<[u8; 32]>,
    definition: Option<RawJson>,
    /// `true` if the text of the definition is the one that was accepted, and not one without secrets.
    is_exact: bool,
    version: Option<Arc<str>>,
    accepted_at: Option<SystemTime>,
    accepted_by: Option<Arc<str>>,
}

impl Pin {
    /// Creates the pin of a definition.
    #[must_use]
    pub fn new(key: PinKey, definition: RawJson) -> Self {
        Self {
            key,
            digest: OnceLock::new(),
            definition: Some(definition),
            is_exact: true,
            version: None,
            accepted_at: None,
            accepted_by: None,
        }
    }

    /// Creates the pin of a definition of which only the digest is known: see [`Pin::digest`].
    #[must_use]
    pub fn from_digest(key: PinKey, digest: [u8; 32]) -> Self {
        Self {
            key,
            digest: OnceLock::from(digest),
            definition: None,
            is_exact: false,
            version: None,
            accepted_at: None,
            accepted_by: None,
        }
    }

    /// Sets a text of the definition for people. It may lack secrets, so that its digest is another one.
    #[must_use]
    pub fn with_shown_definition(mut self, shown: RawJson) -> Self {
        // Computed before the text is replaced.
        let _ = self.digest();
        self.definition = Some(shown);
        self.is_exact = false;
        self
    }

    /// Sets the version of a tool that an operator wrote.
    #[must_use]
    pub fn with_version(mut self, version: Option<impl Into<Arc<str>>>) -> Self {
        self.version = version.map(Into::into);
        self
    }

    /// Sets the time at which the definition was accepted, and who accepted it.
    #[must_use]
    pub fn accepted(mut self, at: SystemTime, by: impl Into<Arc<str>>) -> Self {
        self.accepted_at = Some(at);
        self.accepted_by = Some(by.into());
        self
    }

    /// Returns the key of the definition.
    #[must_use]
    pub fn key(&self) -> &PinKey {
        &self.key
    }

    /// Returns the SHA-256 of the definition's canonical form (RFC 8785).
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| {
            let definition = self.definition.as_ref();
            raw_json::digest(definition.expect("a pin has a digest or a definition"))
        })
    }

    /// Returns the definition for people, if it is known. [`Pin::digest`] decides.
    #[must_use]
    pub fn definition(&self) -> Option<&RawJson> {
        self.definition.as_ref()
    }

    /// Returns `true` if the definition for people is the accepted one, and not one without secrets.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Returns the version of a tool that an operator wrote.
    #[must_use]
    pub fn version(&self) -> Option<&Arc<str>> {
        self.version.as_ref()
    }

    /// Returns the time at which the definition was accepted, if it is known.
    #[must_use]
    pub fn accepted_at(&self) -> Option<SystemTime> {
        self.accepted_at
    }

    /// Returns who accepted the definition, if that is known: `first use`, or the name of an operator.
    #[must_use]
    pub fn accepted_by(&self) -> Option<&Arc<str>> {
        self.accepted_by.as_ref()
    }

    /// Returns `true` if this definition and this version are the accepted ones.
    #[must_use]
    pub fn matches(&self, definition: &RawJson, version: Option<&str>) -> bool {
        if self.version.as_deref() != version {
            return false;
        }
        let own = self.definition.as_ref().filter(|_| self.is_exact);
        // Equal texts need no digest.
        own.is_some_and(|own| own.as_str() == definition.as_str())
            || *self.digest() == raw_json::digest(definition)
    }
}

impl PartialEq for Pin {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.digest() == other.digest() && self.version == other.version
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pin")
            .field("key", &self.key)
            .field("accepted_at", &self.accepted_at)
            .field("accepted_by", &self.accepted_by)
            .finish_non_exhaustive()
    }
}

/// Pins of one kind of entry of a source, by name or URI.
type PinsByName = HashMap<Arc<str>, Arc<Pin>, RandomState>;

/// All pins at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PinSet {
    sources: HashMap<Arc<str>, HashMap<Feature, PinsByName, RandomState>, RandomState>,
}

impl PinSet {
    /// Returns the pin of an entry, by its name or URI at the source.
    #[must_use]
    pub fn get(&self, source: &str, feature: Feature, name: &str) -> Option<&Arc<Pin>> {
        self.sources.get(source)?.get(&feature)?.get(name)
    }

    /// Iterates over all pins, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Pin>> {
        let features = self.sources.values().flat_map(HashMap::values);
        features.flat_map(HashMap::values)
    }

    /// Iterates over the pins of a source, in no order.
    pub fn of_source(&self, source: &str) -> impl Iterator<Item = &Arc<Pin>> {
        let features = self.sources.get(source).into_iter().flat_map(HashMap::values);
        features.flat_map(HashMap::values)
    }

    /// Returns the number of pins.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Returns `true` if there is no pin.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Sets the pin of an entry, and returns the previous one.
    pub fn insert(&mut self, pin: Arc<Pin>) -> Option<Arc<Pin>> {
        let PinKey {
            source,
            feature,
            name,
        } = pin.key().clone();
        let features = self.sources.entry(source).or_default();
        features.entry(feature).or_default().insert(name, pin)
    }

    /// Removes the pin of an entry, and returns it.
    pub fn remove(&mut self, key: &PinKey) -> Option<Arc<Pin>> {
        let features = self.sources.get_mut(&key.source)?;
        features.get_mut(&key.feature)?.remove(&key.name)
    }
}

impl FromIterator<Pin> for PinSet {
    fn from_iter<T: IntoIterator<Item = Pin>>(pins: T) -> Self {
        let mut set = Self::default();
        for pin in pins {
            set.insert(Arc::new(pin));
        }
        set
    }
}
