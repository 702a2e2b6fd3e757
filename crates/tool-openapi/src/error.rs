/// Error for a document from which no operation can be imported.
///
/// # Examples
/// ```
/// use tool_openapi::{ImportOptions, import};
///
/// let error = import(b"swagger: '1.2'", &ImportOptions::new()).unwrap_err();
/// assert_eq!(error.to_string(), "unsupported version `1.2` of Swagger");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct OpenApiError {
    message: String,
    hint: Option<String>,
}

impl OpenApiError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns advice on how to proceed, if there is any.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}
