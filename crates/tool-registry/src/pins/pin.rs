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
    /// SHA-256 of the accepted text and the other fields of this pin, if the definition is still in its storage.
    stored: Option<(Option<[u8; 32]>, Arc<StoredPins>)>,
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
            stored: None,
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
            stored: None,
        }
    }

    /// Makes a pin of [`Pin::from_digest`] read the definition, the time at which it was accepted, and who accepted it, from its
    /// storage when they are first needed. `text_digest` is the SHA-256 of the accepted text, if that is in the storage as it was:
    /// equal texts need no canonical form then.
    #[must_use]
    pub fn with_stored(mut self, text_digest: Option<[u8; 32]>, stored: Arc<StoredPins>) -> Self {
        self.stored = Some((text_digest, stored));
        self
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

    /// Returns this pin with all that its storage knows of it.
    fn complete(&self) -> &Self {
        let stored = self.stored.as_ref().and_then(|(_, stored)| stored.find(self));
        stored.unwrap_or(self)
    }

    /// Returns the definition for people, if it is known. [`Pin::digest`] decides. May wait for the storage: see
    /// [`Pin::with_stored`].
    #[must_use]
    pub fn definition(&self) -> Option<&RawJson> {
        self.complete().definition.as_ref()
    }

    /// Returns `true` if the definition for people is the accepted one, and not one without secrets.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.complete().is_exact
    }

    /// Returns the version of a tool that an operator wrote.
    #[must_use]
    pub fn version(&self) -> Option<&Arc<str>> {
        self.version.as_ref()
    }

    /// Returns the time at which the definition was accepted, if it is known.
    #[must_use]
    pub fn accepted_at(&self) -> Option<SystemTime> {
        self.complete().accepted_at
    }

    /// Returns who accepted the definition, if that is known: `first use`, or the name of an operator.
    #[must_use]
    pub fn accepted_by(&self) -> Option<&Arc<str>> {
        self.complete().accepted_by.as_ref()
    }

    /// Returns `true` if this definition and this version are the accepted ones.
    #[must_use]
    pub fn matches(&self, definition: &RawJson, version: Option<&str>) -> bool {
        if self.version.as_deref() != version {
            return false;
        }
        // Equal texts need no canonical form.
        let is_same_text = match (&self.definition, &self.stored) {
            (Some(own), _) => self.is_exact && own.as_str() == definition.as_str(),
            (None, Some((Some(text), _))) => *text == raw_json::text_digest(definition),
            (None, _) => false,
        };
        is_same_text || *self.digest() == raw_json::digest(definition)
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
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// Pins in a storage, with their definitions, which are read when one is first needed.
///
/// Digests suffice to compare all definitions when a gateway starts. Few of the definitions are ever shown to people.
pub struct StoredPins {
    read: Box<dyn Fn() -> Option<PinSet> + Send + Sync>,
    set: OnceLock<PinSet>,
}

impl StoredPins {
    /// Creates the pins that `read` returns. It may block its thread, logs its failures, and is called again after one.
    #[must_use]
    pub fn new(read: impl Fn() -> Option<PinSet> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            read: Box::new(read),
            set: OnceLock::new(),
        })
    }

    /// Returns a pin as it is stored, unless another definition has been accepted in the meantime.
    fn find(&self, pin: &Pin) -> Option<&Pin> {
        let set = match self.set.get() {
            Some(set) => set,
            None => {
                let read = (self.read)()?;
                self.set.get_or_init(|| read)
            }
        };
        let PinKey {
            source,
            feature,
            name,
        } = &pin.key;
        let found = set.get(source, *feature, name)?;
        (**found == *pin && found.stored.is_none()).then_some(&**found)
    }
}

impl fmt::Debug for StoredPins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredPins")
            .field("is_read", &self.set.get().is_some())
            .finish_non_exhaustive()
    }
}

/// Pins of one kind of entry of a source, by name or URI.
type PinsByName = HashMap<Arc<str>, Arc<Pin>, RandomState>;

/// All pins at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PinSet {
    sources: HashMap<Arc<str>, HashMap<Feature, PinsByName, RandomState>, RandomState>,
    is_unknown: bool,
}

impl PinSet {
    /// Returns the set of a storage that could not be read. Nothing is accepted by its first use then: it may have been seen, and be
    /// another definition by now.
    #[must_use]
    pub fn unknown() -> Self {
        Self {
            is_unknown: true,
            ..Self::default()
        }
    }

    /// Returns `true` if the pins could not be read: see [`PinSet::unknown`].
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.is_unknown
    }

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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn definition(text: &str) -> RawJson {
        RawJson::parse(text.to_owned()).expect("JSON")
    }

    fn key() -> PinKey {
        PinKey::new("files", Feature::Tool, "read")
    }

    /// Returns a pin whose definition is in a storage, and the number of times that the storage was read. It works from the second
    /// time on.
    fn stored(text: &'static str, stored_text: &'static str) -> (Pin, Arc<AtomicUsize>) {
        let n_read = Arc::new(AtomicUsize::new(0));
        let counted = n_read.clone();
        let storage = StoredPins::new(move || {
            let is_first = counted.fetch_add(1, Ordering::Relaxed) == 0;
            let pin = Pin::new(key(), definition(stored_text)).accepted(SystemTime::UNIX_EPOCH, "ada");
            (!is_first).then(|| PinSet::from_iter([pin]))
        });
        let text = definition(text);
        let text_digest = Some(raw_json::text_digest(&text));
        let pin = Pin::from_digest(key(), raw_json::digest(&text)).with_stored(text_digest, storage);
        (pin, n_read)
    }

    #[test]
    fn a_comparison_needs_no_definition_and_the_storage_is_read_once() {
        let (pin, n_read) = stored(r#"{"a":1,"b":2}"#, r#"{"a":1,"b":2}"#);
        assert!(pin.matches(&definition(r#"{"a":1,"b":2}"#), None));
        assert!(
            pin.matches(&definition(r#"{"b": 2, "a": 1}"#), None),
            "the same value"
        );
        assert!(!pin.matches(&definition(r#"{"a":1,"b":3}"#), None));
        assert!(!pin.matches(&definition(r#"{"a":1,"b":2}"#), Some("1.0.0")));
        assert_eq!(n_read.load(Ordering::Relaxed), 0);
        assert_eq!(
            pin.definition().map(RawJson::as_str),
            None,
            "the storage does not work"
        );
        assert_eq!(
            pin.definition().map(RawJson::as_str),
            Some(r#"{"a":1,"b":2}"#),
            "it works again"
        );
        assert!(pin.is_exact());
        assert_eq!(pin.accepted_by().map(|by| &**by), Some("ada"));
        assert_eq!(pin.accepted_at(), Some(SystemTime::UNIX_EPOCH));
        assert_eq!(n_read.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_definition_that_was_accepted_later_is_not_taken_for_the_earlier_one() {
        let (pin, _) = stored(r#"{"a":1}"#, r#"{"a":2}"#);
        for _ in 0..2 {
            assert!(pin.definition().is_none());
        }
        assert!(pin.matches(&definition(r#"{"a":1}"#), None));
    }
}
