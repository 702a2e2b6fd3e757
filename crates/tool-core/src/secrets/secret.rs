use std::{borrow::Cow, fmt, future::ready};

use raw_json::RawJson;
use secrecy::{ExposeSecret, SecretString};

use crate::{BoxFuture, Reference, hide_credentials};

/// A text that must not be shown: it has no `Display`, its `Debug` tells nothing, and its memory is wiped.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Takes a text that must not be shown.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// The text, for the one place where it is used.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The port through which `${…}` references get their values: environment variables, files, named secrets.
pub trait Secrets: Send + Sync {
    /// The present value; nothing if there is none. Called for every use, so that a changed value counts at once.
    fn get<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>>;

    /// Takes note that the upstream does not accept the present value any more: one that is kept is given up, or a new
    /// one is got, so that the next [`Secrets::get`] has another if there is one. Whoever reads every value anew has
    /// nothing to do.
    fn renew<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<(), SecretError>> {
        let _ = reference;
        Box::pin(ready(Ok(())))
    }

    /// Hides what is secret in a value that is written where it is used, and so needs no [`get`](Self::get): an entry
    /// `API_TOKEN` of a server's environment, a header `Authorization`, the URL of a proxy with a user and a password. `name`
    /// is that of the variable, header or parameter. An implementation that does not remember values hides nothing.
    fn learn_written(&self, name: &str, value: &str) {
        let _ = (name, value);
    }

    /// JSON without the secrets among the values that were given out so far, in any encoding; `None` if there are none in it.
    /// For whatever comes from outside and goes past the results of calls: entries of lists, instructions, what is kept of
    /// them. An implementation that does not remember values hides nothing.
    fn hide_in_json(&self, json: &RawJson) -> Option<RawJson> {
        let _ = json;
        None
    }

    /// A text for messages and logs without those, and without anything that looks like a credential.
    fn hide_in_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        hide_credentials(text)
    }

    /// Whether there is a value, found out without waiting: what `check` asks before anything is called.
    ///
    /// # Errors
    /// When it cannot be told, or the reference is not allowed.
    fn has(&self, reference: &Reference) -> Result<bool, SecretError>;
}

/// Why a reference has no value. It names the reference, never a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{reference}` {reason}")]
pub struct SecretError {
    /// The reference as written.
    pub reference: String,
    /// What is wrong: a fragment that follows the reference.
    pub reason: String,
}
