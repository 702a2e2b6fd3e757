//! Embedder of a configuration.

use std::sync::Arc;

use tool_core::Embedder;
use tool_manifest::Configuration;
#[cfg(any(feature = "outbound", feature = "embed-local"))]
use tool_manifest::EmbeddingsSpec;

use crate::outgoing::client::Outbound;

/// Returns the embedder that a configuration names, if it names one. The features of the build were checked before.
pub(crate) fn embedder(configuration: &Configuration, outbound: &Arc<Outbound>) -> Option<Arc<dyn Embedder>> {
    let _ = outbound;
    match configuration.search.embeddings.as_ref()? {
        #[cfg(feature = "outbound")]
        EmbeddingsSpec::Service {
            url,
            model,
            api_key,
            timeout,
            ..
        } => Some(Arc::new(crate::outgoing::embedder::EmbeddingService {
            outbound: outbound.clone(),
            url: url.clone(),
            model: model.clone(),
            api_key: api_key.clone(),
            timeout: *timeout,
        })),
        #[cfg(feature = "embed-local")]
        EmbeddingsSpec::Directory(directory) => Some(Arc::new(tool_embed::LocalEmbedder::new(directory))),
        _ => None,
    }
}
