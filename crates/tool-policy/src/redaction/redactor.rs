use std::{
    borrow::Cow,
    collections::VecDeque,
    fmt,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use raw_json::RawJson;
use tool_core::{
    BoxFuture, Provider, Reference, Secret, SecretError, SecretSearch, Secrets, hide_credentials,
};

use super::configured_secrets;

/// Maximum number of known values. The oldest one is forgotten first.
const MAX_KNOWN: usize = 1_000;
/// Minimum length of a hidden value, in bytes. A shorter one would match by chance.
const MIN_LENGTH: usize = 4;
/// Minimum length of a value that is hidden in results, where a match by chance would corrupt data.
const MIN_LENGTH_IN_RESULTS: usize = 8;

/// Registry of the secrets that were used so far. It hides them in texts, in every encoding in which an upstream may return
/// them: see [`SecretSearch`]. Clones share the registry.
///
/// # Examples
/// ```
/// use tool_policy::Redactor;
///
/// let redactor = Redactor::default();
/// redactor.learn("hunter2hunter2");
/// assert_eq!(redactor.hide_in_text("Bearer hunter2hunter2"), "Bearer [redacted]");
/// ```
#[derive(Clone, Default)]
pub struct Redactor(Arc<Shared>);

#[derive(Default)]
struct Shared {
    known: Mutex<VecDeque<String>>,
    /// Hashes of the known values, read without a lock: nearly every value that is used is known already.
    seen: ArcSwap<Vec<u64>>,
    hasher: RandomState,
    /// Number of values that were learnt so far.
    generation: AtomicU64,
    /// Compiled searches, built on first use after a value was learnt.
    searches: ArcSwapOption<Searches>,
}

/// Compiled searches for the known values.
struct Searches {
    in_text: SecretSearch,
    in_results: SecretSearch,
}

impl Redactor {
    /// Wraps a source of secrets, so that each secret is hidden from its first use on.
    #[must_use]
    pub fn wrap_secrets(&self, secrets: Arc<dyn Secrets>) -> Arc<dyn Secrets> {
        Arc::new(LearningSecrets {
            secrets,
            redactor: self.clone(),
        })
    }

    /// Adds a value, which is hidden from now on. A value of fewer than four bytes is ignored.
    pub fn learn(&self, value: &str) {
        let value = value.trim();
        let hash = self.0.hasher.hash_one(value);
        if value.len() < MIN_LENGTH || self.0.seen.load().contains(&hash) {
            return;
        }
        let mut known = self.0.known.lock();
        if known.iter().any(|other| other == value) {
            return;
        }
        if known.len() == MAX_KNOWN {
            known.pop_front();
        }
        known.push_back(value.to_owned());
        self.0.searches.store(None);
        self.0.generation.fetch_add(1, Ordering::Release);
        let hashes = known.iter().map(|value| self.0.hasher.hash_one(value.as_str()));
        self.0.seen.store(Arc::new(hashes.collect()));
    }

    /// Returns `true` if no value is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.seen.load().is_empty()
    }

    /// Returns a number that grows with each learnt value. A text that was searched at a smaller number may hold a new value.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.0.generation.load(Ordering::Acquire)
    }

    /// Hides the known secrets in a message or log line, and anything else that looks like a credential: see
    /// [`hide_credentials`].
    #[must_use]
    pub fn hide_in_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.hide_known(text) {
            Cow::Borrowed(text) => hide_credentials(text),
            Cow::Owned(text) => Cow::Owned(hide_credentials(&text).into_owned()),
        }
    }

    /// Hides only the known secrets. For texts of our own whose layout must stay, such as a whole log line.
    #[must_use]
    pub fn hide_known<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.searches() {
            Some(searches) => searches.in_text.hide_in_text(text),
            None => Cow::Borrowed(text),
        }
    }

    /// Hides the known secrets in JSON, such as a result, a notification or an entry of a server's list. All other bytes stay.
    /// Returns `None` if there are none in it.
    #[must_use]
    pub fn hide_in_json(&self, value: &RawJson) -> Option<RawJson> {
        self.searches()?.in_results.hide_in_json(value)
    }

    fn searches(&self) -> Option<Arc<Searches>> {
        if self.is_empty() {
            return None;
        }
        if let Some(searches) = self.0.searches.load_full() {
            return Some(searches);
        }
        // Holds the lock, so that no value is learnt before the searches are stored.
        let known = self.0.known.lock();
        let long = known.iter().filter(|value| value.len() >= MIN_LENGTH_IN_RESULTS);
        let searches = Arc::new(Searches {
            in_text: SecretSearch::new(known.iter()),
            in_results: SecretSearch::new(long),
        });
        self.0.searches.store(Some(searches.clone()));
        Some(searches)
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_known = self.0.seen.load().len();
        f.debug_struct("Redactor")
            .field("n_known", &n_known)
            .finish_non_exhaustive()
    }
}

/// Source of secrets that adds each used secret to a redactor.
struct LearningSecrets {
    secrets: Arc<dyn Secrets>,
    redactor: Redactor,
}

impl Secrets for LearningSecrets {
    fn get<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        let is_proxy =
            reference.provider == Provider::Environment && configured_secrets::is_proxy(&reference.name);
        if !reference.is_secret() && !is_proxy {
            return self.secrets.get(reference);
        }
        Box::pin(async move {
            let value = self.secrets.get(reference).await?;
            if let Some(value) = &value {
                if reference.is_secret() {
                    self.redactor.learn(value.expose());
                }
                if is_proxy {
                    self.learn_written(&reference.name, value.expose());
                }
            }
            Ok(value)
        })
    }

    fn renew<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<(), SecretError>> {
        self.secrets.renew(reference)
    }

    fn learn_written(&self, name: &str, value: &str) {
        let parts = configured_secrets::find_secrets(name, value);
        parts.iter().for_each(|part| self.redactor.learn(part));
    }

    fn hide_in_json(&self, json: &RawJson) -> Option<RawJson> {
        self.redactor.hide_in_json(json)
    }

    fn hide_in_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redactor.hide_in_text(text)
    }

    fn has(&self, reference: &Reference) -> Result<bool, SecretError> {
        self.secrets.has(reference)
    }
}
