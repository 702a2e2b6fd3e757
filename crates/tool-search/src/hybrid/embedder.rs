use std::pin::Pin;

/// Port that turns texts into vectors.
///
/// Search works without one. An implementation may call a service or run a model; whatever fails there, the search goes on by
/// words.
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
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxedEmbedding<'a>;
}

/// Future of [`Embedder::embed`].
pub type BoxedEmbedding<'a> = Pin<Box<dyn Future<Output = Result<Vec<Vec<f32>>, EmbedError>> + Send + 'a>>;

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
