use std::{
    borrow::Cow,
    collections::VecDeque,
    fmt,
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, PoisonError},
};

use aho_corasick::{AhoCorasick, MatchKind};
use arc_swap::{ArcSwap, ArcSwapOption};
use raw_json::{Kind, RawJson};
use tool_core::{BoxFuture, HIDDEN, Reference, Secret, SecretError, Secrets, hide_credentials, secret_forms};

use crate::proxy;

/// How many values are known at most: the oldest one is forgotten first.
const MAX_KNOWN: usize = 1_000;
/// A value shorter than this is hidden nowhere: it would be found by chance.
const MIN_LENGTH: usize = 4;
/// The same for results, where finding one by chance spoils data.
const MIN_LENGTH_IN_RESULTS: usize = 8;

/// The secrets that were used so far, and texts without them: each value in every form that an upstream may give it back
/// in, see [`secret_forms`]. Clones share what they know.
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
    /// Built when first needed after something was learnt.
    finders: ArcSwapOption<Finders>,
}

/// What finds the known values in all of their forms.
struct Finders {
    in_text: Option<AhoCorasick>,
    in_results: Option<AhoCorasick>,
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
        let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.iter().any(|other| other == value) {
            return;
        }
        if known.len() == MAX_KNOWN {
            known.pop_front();
        }
        known.push_back(value.to_owned());
        self.0.finders.store(None);
        let hashes = known.iter().map(|value| self.0.hasher.hash_one(value.as_str()));
        self.0.seen.store(Arc::new(hashes.collect()));
    }

    /// Whether nothing is known that could be hidden.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.seen.load().is_empty()
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
        match self.finders().and_then(|finders| finders.in_text.clone()) {
            Some(finder) => replaced(&finder, text),
            None => Cow::Borrowed(text),
        }
    }

    /// A result, if there is something to hide in it. All else in it keeps its own bytes.
    #[must_use]
    pub fn json(&self, value: &RawJson) -> Option<RawJson> {
        let finders = self.finders()?;
        let finder = finders.in_results.as_ref()?;
        match replaced(finder, value.as_str()) {
            Cow::Borrowed(_) => None,
            // Nearly always what is found stands within a string.
            Cow::Owned(text) => Some(RawJson::parse(text).unwrap_or_else(|_| rebuilt(finder, value))),
        }
    }

    fn finders(&self) -> Option<Arc<Finders>> {
        if self.is_empty() {
            return None;
        }
        if let Some(finders) = self.0.finders.load_full() {
            return Some(finders);
        }
        // Whoever learns meanwhile waits, so that what is stored here knows all.
        let known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        let long = known.iter().filter(|value| value.len() >= MIN_LENGTH_IN_RESULTS);
        let finders = Arc::new(Finders {
            in_text: finder(known.iter()),
            in_results: finder(long),
        });
        self.0.finders.store(Some(finders.clone()));
        Some(finders)
    }
}

/// What finds these values in all of their forms; nothing for no values.
fn finder<'a>(values: impl Iterator<Item = &'a String>) -> Option<AhoCorasick> {
    let forms: Vec<String> = values.flat_map(|value| secret_forms(value)).collect();
    if forms.is_empty() {
        return None;
    }
    // A value that holds another one is hidden as a whole.
    let mut builder = AhoCorasick::builder();
    builder.match_kind(MatchKind::LeftmostLongest).build(&forms).ok()
}

fn replaced<'a>(finder: &AhoCorasick, text: &'a str) -> Cow<'a, str> {
    let Some(first) = finder.find(text) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..first.start()]);
    let mut at = first.start();
    for found in finder.find_iter(&text[at..]) {
        out.push_str(&text[at..first.start() + found.start()]);
        out.push_str(HIDDEN);
        at = first.start() + found.end();
    }
    out.push_str(&text[at..]);
    Cow::Owned(out)
}

/// The value, built anew where something in it is to be hidden: for what is found in a number, or across several values.
fn rebuilt(finder: &AhoCorasick, value: &RawJson) -> RawJson {
    if !finder.is_match(value.as_str()) {
        return value.clone();
    }
    match value.kind() {
        Kind::Object => {
            let members = value.members().map(|(key, member)| {
                let key = RawJson::from(&*replaced(finder, &key));
                format!("{key}:{}", rebuilt(finder, &member))
            });
            joined('{', members, '}')
        }
        Kind::Array => joined(
            '[',
            value.items().map(|item| rebuilt(finder, &item).to_string()),
            ']',
        ),
        Kind::String => {
            let text = value.string().unwrap_or_default();
            RawJson::from(&*replaced(finder, &text))
        }
        _ => RawJson::from(HIDDEN),
    }
}

fn joined(open: char, parts: impl Iterator<Item = String>, close: char) -> RawJson {
    let parts: Vec<String> = parts.collect();
    RawJson::parse(format!("{open}{}{close}", parts.join(","))).unwrap_or_else(|_| RawJson::from(HIDDEN))
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
        let is_proxy = proxy::is_named(reference);
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
                    let parts = proxy::credentials(value.expose());
                    parts.iter().for_each(|part| self.redactor.learn(part));
                }
            }
            Ok(value)
        })
    }

    fn renew<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<(), SecretError>> {
        self.secrets.renew(reference)
    }

    fn has(&self, reference: &Reference) -> Result<bool, SecretError> {
        self.secrets.has(reference)
    }
}
