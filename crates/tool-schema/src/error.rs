/// Why a schema cannot be used. The message is made for the schema's author.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SchemaError {
    kind: SchemaErrorKind,
    message: String,
    pointer: String,
}

/// What is wrong with a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaErrorKind {
    /// It is not JSON, or neither an object nor a boolean.
    NotASchema,
    /// It is larger, deeper or more entangled than allowed.
    TooLarge,
    /// It breaks the rules of its draft, refers to what it does not hold, or has a pattern that is none.
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

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> SchemaErrorKind {
        self.kind
    }

    /// Where in the schema, as a JSON Pointer (RFC 6901); empty for the schema as a whole.
    #[must_use]
    pub fn pointer(&self) -> &str {
        &self.pointer
    }
}
