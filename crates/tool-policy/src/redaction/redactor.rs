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

/// How many values are known at most: the oldest one is forgotten first.
const MAX_KNOWN: usize = 1_000;
/// A value shorter than this is hidden nowhere: it would be found by chance.
const MIN_LENGTH: usize = 4;
/// The same for results, where finding one by chance spoils data.
const MIN_LENGTH_IN_RESULTS: usize = 8;

/// The secrets that were used so far, and texts without them: each value in every encoding that an upstream may give it back
/// in, see [`SecretSearch`]. Clones share what they know.
///
/// ```
/// use tool_policy::Redactor;
///
/// let redactor = Redactor::default();
/// redactor.learn("hunter2hunter2");
/// assert_eq!(redactor.text("Bearer hunter2hunter2"), "Bearer [redacted]");
/// ```
#[derive(Clone, Default)]
pub struct Redactor(Arc<Shared>);

#[derive(Default)]
struct Shared {
    known: Mutex<VecDeque<String>>,
    /// Hashes of the known values, looked at without waiting: nearly every value that is used is known.
    seen: ArcSwap<Vec<u64>>,
    hasher: RandomState,
    /// How many values were learnt so far.
    generation: AtomicU64,
    /// Built when first needed after something was learnt.
    searches: ArcSwapOption<Searches>,
}

/// Searches for the known values.
struct Searches {
    in_text: SecretSearch,
    in_results: SecretSearch,
}

impl Redactor {
    /// The same values, with every secret among them known here from its first use on.
    #[must_use]
    pub fn watching(&self, secrets: Arc<dyn Secrets>) -> Arc<dyn Secrets> {
        Arc::new(Watched {
            secrets,
            redactor: self.clone(),
        })
    }

    /// Hides this value from now on. One of fewer than four characters is not hidden.
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

    /// Whether nothing is known that could be hidden.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.seen.load().is_empty()
    }

    /// Grows whenever a value is learnt: a text that was searched before may hold it.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.0.generation.load(Ordering::Acquire)
    }

    /// A text for messages and logs: also without the credentials in it that nobody has named, see [`hide_credentials`].
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.known(text) {
            Cow::Borrowed(text) => hide_credentials(text),
            Cow::Owned(text) => Cow::Owned(hide_credentials(&text).into_owned()),
        }
    }

    /// A text without the known secrets alone: for one of our own, such as a whole line of a log, whose layout must stay.
    #[must_use]
    pub fn known<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.searches() {
            Some(searches) => searches.in_text.hide_in_text(text),
            None => Cow::Borrowed(text),
        }
    }

    /// JSON without the known secrets, if there are any in it: a result, a notification, an entry of a server's list. All else
    /// in it keeps its own bytes.
    #[must_use]
    pub fn json(&self, value: &RawJson) -> Option<RawJson> {
        self.searches()?.in_results.hide_in_json(value)
    }

    fn searches(&self) -> Option<Arc<Searches>> {
        if self.is_empty() {
            return None;
        }
        if let Some(searches) = self.0.searches.load_full() {
            return Some(searches);
        }
        // Whoever learns meanwhile waits, so that what is stored here knows all.
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

/// Values that are known once they are used.
struct Watched {
    secrets: Arc<dyn Secrets>,
    redactor: Redactor,
}

impl Secrets for Watched {
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
        let parts = configured_secrets::secrets(name, value);
        parts.iter().for_each(|part| self.redactor.learn(part));
    }

    fn hide_in_json(&self, json: &RawJson) -> Option<RawJson> {
        self.redactor.json(json)
    }

    fn hide_in_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redactor.text(text)
    }

    fn has(&self, reference: &Reference) -> Result<bool, SecretError> {
        self.secrets.has(reference)
    }
}
