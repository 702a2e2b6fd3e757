/// Error for a schema that cannot be used. The message is for the schema's author.
///
/// # Examples
///
/// ```
/// use tool_schema::Schema;
///
/// let error = r#"{"properties": {"n": {"minimum": "1"}}}"#.parse::<Schema>().unwrap_err();
/// assert_eq!(error.pointer(), "/properties/n/minimum");
/// assert_eq!(
///     error.to_string(),
///     r#"the schema is not usable: `/properties/n/minimum` must be a number, not "1""#
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema is not usable: {reason}")]
pub struct SchemaError {
    kind: SchemaErrorKind,
    reason: String,
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
    pub(crate) fn new(kind: SchemaErrorKind, reason: impl Into<String>) -> Self {
        Self {
            kind,
            reason: reason.into(),
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

    /// Returns the message without its opening, for a message that names the schema itself.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns the place in the schema as a JSON Pointer (RFC 6901). Empty for the schema as a whole.
    #[must_use]
    pub fn pointer(&self) -> &str {
        &self.pointer
    }
}
