use std::{borrow::Cow, fmt, future::ready};

use raw_json::RawJson;
use secrecy::{ExposeSecret, SecretString};

use crate::{BoxFuture, Reference, hide_credentials};

/// Secret text: without `Display`, with a `Debug` that shows nothing, and wiped from memory when dropped.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Creates a secret.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// Returns the text, for the one place where it is used.
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

/// Port that resolves `${…}` references: environment variables, files, named secrets.
pub trait Secrets: Send + Sync {
    /// Returns the current value, or `None` if there is none. Called for every use, so that a changed value takes
    /// effect at once.
    fn get<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>>;

    /// Records that the upstream rejects the current value. A cached value is dropped, or a new one fetched, so that
    /// the next [`Secrets::get`] returns another if there is one. An implementation without a cache need not do
    /// anything.
    fn renew<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<(), SecretError>> {
        let _ = reference;
        Box::pin(ready(Ok(())))
    }

    /// Learns a value that is written where it is used and is not resolved by [`get`](Self::get), if it looks like a
    /// secret: an entry `API_TOKEN` of a server's environment, a header `Authorization`, the URL of a proxy with a
    /// user and a password. `name` is the name of the variable, header or parameter. An implementation that remembers
    /// no values does nothing.
    fn learn_written(&self, name: &str, value: &str) {
        let _ = (name, value);
    }

    /// Returns the JSON without the secrets among all values resolved so far, in any encoding; `None` if it contains
    /// none. For data from outside that bypasses the results of calls: entries of lists, instructions, caches of
    /// them. An implementation that remembers no values hides nothing.
    fn hide_in_json(&self, json: &RawJson) -> Option<RawJson> {
        let _ = json;
        None
    }

    /// Returns a text for messages and logs without those secrets and without text that looks like a credential.
    fn hide_in_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        hide_credentials(text)
    }

    /// Returns `true` if there is a value, without waiting: `check` asks this before anything is called.
    ///
    /// # Errors
    /// If that is unknown, or the reference is not allowed.
    fn has(&self, reference: &Reference) -> Result<bool, SecretError>;
}

/// Secrets of a program that has none: no reference has a value.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSecrets;

impl Secrets for NoSecrets {
    fn get<'a>(&'a self, _: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(ready(Ok(None)))
    }

    fn has(&self, _: &Reference) -> Result<bool, SecretError> {
        Ok(false)
    }
}

/// Error of a reference without a value. Names the reference, never a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{reference}` {reason}")]
#[non_exhaustive]
pub struct SecretError {
    /// Reference as written.
    pub reference: String,
    /// Problem: a fragment that follows the reference.
    pub reason: String,
}

impl SecretError {
    /// Creates the error of a reference, as written, and a fragment that follows it.
    #[must_use]
    pub fn new(reference: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            reference: reference.into(),
            reason: reason.into(),
        }
    }
}
