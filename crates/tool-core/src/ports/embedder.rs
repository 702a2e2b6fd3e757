use crate::BoxFuture;

/// Port that turns texts into vectors whose distance says how different their meanings are.
///
/// Search and semantic caches work without one. An implementation may call a service or run a model; whatever fails there, a
/// search goes on by words, and a call is made as without a cache.
pub trait Embedder: Send + Sync {
    /// Returns the name of the model. Vectors of different models are not compared.
    fn model(&self) -> &str;

    /// Returns one vector of length 1 for each text, in the same order.
    ///
    /// # Errors
    /// If the texts cannot be embedded.
    ///
    /// # Cancellation
    /// When the future is dropped, its result is lost and nothing else has happened.
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>>;
}

/// Reason for which texts could not be embedded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EmbedError {
    message: String,
}

impl EmbedError {
    /// Creates an error from a lower-case fragment.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}
