/// Error of a text that is not the expected JSON, with its offset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} at byte {}", inner.kind, inner.offset)]
pub struct JsonError {
    /// Boxed, so that the result of a scanner step fits into registers.
    inner: Box<Inner>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    kind: JsonErrorKind,
    offset: usize,
}

/// Kind of a [`JsonError`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonErrorKind {
    /// The bytes are not UTF-8.
    #[error("invalid UTF-8")]
    Utf8,
    /// The text violates the grammar of JSON (RFC 8259). The message names the first violation.
    #[error("invalid JSON: {0}")]
    Syntax(&'static str),
    /// Arrays and objects are nested deeper than allowed.
    #[error("nested deeper than {0} levels")]
    TooDeep(usize),
    /// An object has the same key twice; two readers could see different values.
    #[error("duplicate key `{0}`")]
    DuplicateKey(String),
    /// Another kind of value was expected, such as an object.
    #[error("expected {0}")]
    Unexpected(&'static str),
    /// The value does not fit the Rust type that it is read into.
    #[error("{0}")]
    Shape(String),
}

impl JsonError {
    #[cold]
    #[inline(never)]
    pub(crate) fn new(kind: JsonErrorKind, offset: usize) -> Self {
        Self {
            inner: Box::new(Inner { kind, offset }),
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn syntax(what: &'static str, offset: usize) -> Self {
        Self::new(JsonErrorKind::Syntax(what), offset)
    }

    /// Kind of the error.
    #[must_use]
    pub fn kind(&self) -> &JsonErrorKind {
        &self.inner.kind
    }

    /// Byte offset at which the error was detected.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.inner.offset
    }
}
