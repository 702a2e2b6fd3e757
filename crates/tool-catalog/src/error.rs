use std::fmt;

/// Error of a catalog: what is wrong, where, and what to try.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct CatalogError {
    kind: CatalogErrorKind,
    place: String,
    problem: String,
    hint: Option<String>,
}

/// Kind of a [`CatalogError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CatalogErrorKind {
    /// There is no such entry, package or file.
    NotFound,
    /// The content cannot be used.
    Invalid,
    /// The content is not the one that the entry, or a pin, names.
    Mismatch,
    /// The signature is missing or wrong.
    Signature,
    /// The catalog cannot be read.
    Unavailable,
}

impl CatalogError {
    /// Creates an error. `problem` is a lower-case fragment that follows the place.
    #[must_use]
    pub fn new(kind: CatalogErrorKind, place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            kind,
            place: place.into(),
            problem: problem.into(),
            hint: None,
        }
    }

    /// Creates the error of content that cannot be used.
    pub(crate) fn invalid(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::new(CatalogErrorKind::Invalid, place, problem)
    }

    /// Sets the advice.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> CatalogErrorKind {
        self.kind
    }

    /// Returns the file, entry or field.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Returns the advice.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for CatalogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place.is_empty() {
            true => f.write_str(&self.problem),
            false => write!(f, "`{}`: {}", self.place, self.problem),
        }
    }
}
