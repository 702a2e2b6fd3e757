/// Why a text is not the JSON that was asked for, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} at byte {}", inner.kind, inner.offset)]
pub struct JsonError {
    /// Boxed, so that what a step of a scanner comes to fits into registers.
    inner: Box<Inner>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    kind: JsonErrorKind,
    offset: usize,
}

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonErrorKind {
    /// The bytes are not UTF-8.
    #[error("invalid UTF-8")]
    Utf8,
    /// The text breaks JSON's grammar (RFC 8259); the text says what stood where something else was due.
    #[error("invalid JSON: {0}")]
    Syntax(&'static str),
    /// Arrays and objects are nested deeper than allowed.
    #[error("nested deeper than {0} levels")]
    TooDeep(usize),
    /// An object has the same key twice; two readers could see different values.
    #[error("duplicate key `{0}`")]
    DuplicateKey(String),
    /// Another kind of value was needed, such as an object.
    #[error("expected {0}")]
    Unexpected(&'static str),
    /// The value does not fit the type it was read into.
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

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> &JsonErrorKind {
        &self.inner.kind
    }

    /// The offset in bytes at which it was noticed.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.inner.offset
    }
}
