use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use tool_core::{BoxFuture, EmbedError, Embedder};

use crate::model::Model;

/// Embedder that runs a model from a directory with `config.json`, `tokenizer.json` and `model.safetensors`.
///
/// The model is read when the first text is embedded, and stays in memory. Texts are embedded on a thread for blocking work,
/// one request at a time.
#[derive(Debug, Clone)]
pub struct LocalEmbedder {
    name: Arc<str>,
    directory: Arc<PathBuf>,
    model: Arc<Mutex<Option<Model>>>,
}

impl LocalEmbedder {
    /// Creates the embedder. Reads nothing yet.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        Self {
            name: directory.display().to_string().into(),
            directory: Arc::new(directory),
            model: Arc::default(),
        }
    }

    fn embed_now(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        // A panic of a library poisons the lock; the model itself is never changed.
        let mut slot = self
            .model
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let model = match &mut *slot {
            Some(model) => model,
            // After a failure the next request tries again: the files may be about to be written.
            empty => empty.insert(Model::open(&self.directory)?),
        };
        model.embed(texts)
    }
}

impl Embedder for LocalEmbedder {
    fn model(&self) -> &str {
        &self.name
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        let (embedder, texts) = (self.clone(), texts.to_vec());
        Box::pin(async move {
            let embedded = tokio::task::spawn_blocking(move || embedder.embed_now(&texts)).await;
            embedded.unwrap_or_else(|error| Err(EmbedError::new(format!("the model failed: {error}"))))
        })
    }
}
