use std::{collections::HashMap, fmt, sync::Arc};

use parking_lot::Mutex;
use tool_core::{EmbedError, Embedder};

/// Number of texts that are embedded at once.
const BATCH: usize = 64;

/// Vectors by the digest of the definition that they were computed from: each definition is embedded once.
#[derive(Default)]
pub(crate) struct VectorCache {
    vectors: Mutex<CachedVectors>,
}

#[derive(Default)]
struct CachedVectors {
    model: String,
    by_digest: HashMap<[u8; 32], Arc<[f32]>>,
}

impl VectorCache {
    /// Returns the vector of a definition, if it was computed.
    #[must_use]
    pub(crate) fn get(&self, digest: &[u8; 32]) -> Option<Arc<[f32]>> {
        self.vectors.lock().by_digest.get(digest).cloned()
    }

    /// Returns the vectors of definitions by this model, in the same order, or `None` if one of them was not computed.
    #[must_use]
    pub(crate) fn all_of<'a>(
        &self,
        model: &str,
        digests: impl IntoIterator<Item = &'a [u8; 32]>,
    ) -> Option<Vec<Arc<[f32]>>> {
        let vectors = self.vectors.lock();
        if vectors.model != model {
            return None;
        }
        let known = digests.into_iter();
        known
            .map(|digest| vectors.by_digest.get(digest).cloned())
            .collect()
    }

    /// Embeds the definitions that have no vector yet, each given with its digest. Forgets all vectors if they are of another
    /// model.
    ///
    /// # Errors
    /// If texts cannot be embedded. The vectors that were computed before stay.
    ///
    /// # Cancellation
    /// When the future is dropped, the vectors of finished batches stay.
    pub(crate) async fn fill(
        &self,
        embedder: &dyn Embedder,
        definitions: impl IntoIterator<Item = ([u8; 32], String)> + Send,
    ) -> Result<(), EmbedError> {
        let missing: Vec<_> = {
            let mut vectors = self.vectors.lock();
            if vectors.model != embedder.model() {
                vectors.by_digest.clear();
                embedder.model().clone_into(&mut vectors.model);
            }
            let definitions = definitions.into_iter();
            definitions
                .filter(|(digest, _)| !vectors.by_digest.contains_key(digest))
                .collect()
        };
        for batch in missing.chunks(BATCH) {
            let texts: Vec<String> = batch.iter().map(|(_, text)| text.clone()).collect();
            let embedded = embedder.embed(&texts).await?;
            if embedded.len() != texts.len() {
                let message = format!(
                    "the model returned {} vectors for {} texts",
                    embedded.len(),
                    texts.len()
                );
                return Err(EmbedError::new(message));
            }
            let mut vectors = self.vectors.lock();
            for ((digest, _), vector) in batch.iter().zip(embedded) {
                vectors.by_digest.insert(*digest, vector.into());
            }
        }
        Ok(())
    }

    /// Forgets the vectors of all definitions except these.
    pub(crate) fn retain(&self, is_used: impl Fn(&[u8; 32]) -> bool) {
        self.vectors.lock().by_digest.retain(|digest, _| is_used(digest));
    }
}

impl fmt::Debug for VectorCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vectors = self.vectors.lock();
        f.debug_struct("VectorCache")
            .field("model", &vectors.model)
            .field("n_vectors", &vectors.by_digest.len())
            .finish()
    }
}
