/// Error for a schema that cannot be used. The message is for the schema's author.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SchemaError {
    kind: SchemaErrorKind,
    message: String,
    pointer: String,
}

/// Kind of a [`SchemaError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaErrorKind {
    /// The schema is not JSON, or neither an object nor a boolean.
    NotASchema,
    /// The schema exceeds a limit of size, nesting or references.
    TooLarge,
    /// The schema breaks the rules of its draft, has a dangling reference, or an invalid pattern.
    Invalid,
}

impl SchemaError {
    pub(crate) fn new(kind: SchemaErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            pointer: String::new(),
        }
    }

    pub(crate) fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = pointer.into();
        self
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> SchemaErrorKind {
        self.kind
    }

    /// Returns the place in the schema as a JSON Pointer (RFC 6901). Empty for the schema as a whole.
    #[must_use]
    pub fn pointer(&self) -> &str {
        &self.pointer
    }
}
