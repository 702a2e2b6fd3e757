//! Semantic cache of a layer: its embedder, and the search for earlier calls.

use std::{
    fmt,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use moka::sync::Cache;
use parking_lot::RwLock;
use raw_json::RawJson;
use tokio::sync::OnceCell;
use tool_core::{CallContext, Embedder};

use super::{
    SemanticCacheSettings,
    index::{Meaning, Nearest, Request, SemanticIndex},
    wording::Wording,
};
use crate::{
    cache::response_cache::{CacheKey, CachedReply},
    timeout::within,
};

/// Maximum length of a text, in bytes. Models read only the beginning of a longer one, so it must be equal.
const MAX_TEXT: usize = 500;
/// Time limit of the embedder. Then the call is made.
const LIMIT: Duration = Duration::from_secs(2);
/// Maximum number of texts whose vectors are remembered.
const MAX_VECTORS: u64 = 2_000;

/// Model, and text that it embedded.
type EmbeddedText = (Arc<str>, Arc<str>);

/// Finds the cached results of calls that mean the same.
pub(crate) struct SemanticCache {
    embedder: RwLock<Option<Arc<dyn Embedder>>>,
    index: SemanticIndex,
    /// Vectors of texts that were or are being embedded.
    vectors: Cache<EmbeddedText, Arc<OnceCell<Arc<[f32]>>>>,
    /// `true` since the embedder failed, until it works again.
    is_failing: AtomicBool,
}

impl SemanticCache {
    /// Sets the embedder; `None` disables the cache.
    pub(crate) fn set_embedder(&self, embedder: Option<Arc<dyn Embedder>>) {
        *self.embedder.write() = embedder;
    }

    /// Embeds the texts of a call.
    ///
    /// # Errors
    /// The reason for which the call can only be answered with the result of an equal call.
    pub(crate) async fn request(
        &self,
        cx: &CallContext,
        key: &CacheKey,
        settings: &SemanticCacheSettings,
    ) -> Result<Request, String> {
        let embedder = self.embedder.read().clone().ok_or("there is no embedder")?;
        let fields = cx.arguments.raw();
        let mut compared = Vec::new();
        for name in &*settings.fields {
            if let Some(text) = fields.get(name).and_then(|field| field.string()) {
                if text.len() > MAX_TEXT {
                    return Err(format!("`{name}` has more than {MAX_TEXT} bytes"));
                }
                compared.push((name.as_str(), text));
            }
        }
        if compared.is_empty() {
            return Err("the call has none of its texts".to_owned());
        }
        let names: Vec<&str> = compared.iter().map(|(name, _)| *name).collect();
        let others = fields
            .without_members(&names)
            .map_err(|error| error.to_string())?;
        let model: Arc<str> = embedder.model().into();
        let texts: Vec<Arc<str>> = compared.iter().map(|(_, text)| text.as_str().into()).collect();
        let vectors = self.vectors(cx, &*embedder, (&model, &texts)).await?;
        let meaning = |(text, vector): (&Arc<str>, Arc<[f32]>)| Meaning {
            wording: Wording::of(text),
            vector,
        };
        Ok(Request {
            group: key.with_arguments(group_digest(&model, &names, others)),
            meanings: texts.iter().zip(vectors).map(meaning).collect(),
        })
    }

    /// Finds the nearest fresh result of a call that means the same as a request.
    pub(crate) fn nearest(
        &self,
        request: &Request,
        settings: &SemanticCacheSettings,
        fresh: impl Fn(&CacheKey) -> Option<Arc<CachedReply>>,
    ) -> Nearest<Arc<CachedReply>> {
        self.index.nearest(request, settings.threshold, fresh)
    }

    /// Adds a call whose result was cached under this key.
    pub(crate) fn add(&self, request: &Request, key: CacheKey) {
        self.index.add(request, key);
    }

    /// Returns the vectors of texts. Calls with the same text wait for one embedding.
    async fn vectors(
        &self,
        cx: &CallContext,
        embedder: &dyn Embedder,
        (model, texts): (&Arc<str>, &[Arc<str>]),
    ) -> Result<Vec<Arc<[f32]>>, String> {
        // A quarter of the time: the call itself needs the rest.
        let limit = cx.remaining().map_or(LIMIT, |left| LIMIT.min(left / 4));
        let all = async {
            let mut vectors = Vec::with_capacity(texts.len());
            for text in texts {
                let slot = self.vectors.get_with((model.clone(), text.clone()), Arc::default);
                let vector = slot.get_or_try_init(|| embed(embedder, text)).await?;
                vectors.push(vector.clone());
            }
            Ok(vectors)
        };
        let vectors = within(limit, None, pin!(all)).await;
        let vectors = vectors.unwrap_or_else(|| Err(format!("it did not answer within {limit:?}")));
        self.report(vectors.as_ref().err());
        vectors.map_err(|problem| format!("the embedder failed: {problem}"))
    }

    /// Logs that the embedder begins to fail, and that it works again.
    fn report(&self, problem: Option<&String>) {
        let was_failing = self.is_failing.swap(problem.is_some(), Ordering::Relaxed);
        match problem {
            Some(problem) if !was_failing => {
                tracing::warn!(%problem, "the embedder fails: calls are answered only with results of equal calls");
            }
            None if was_failing => tracing::info!("the embedder works again"),
            _ => {}
        }
    }
}

/// Embeds one text.
async fn embed(embedder: &dyn Embedder, text: &str) -> Result<Arc<[f32]>, String> {
    let mut vectors = embedder
        .embed(&[text.to_owned()])
        .await
        .map_err(|error| error.to_string())?;
    match (vectors.pop(), vectors.len()) {
        (Some(vector), 0) => Ok(vector.into()),
        (last, others) => Err(format!(
            "it returned {} vectors for one text",
            usize::from(last.is_some()) + others
        )),
    }
}

/// Returns the digest of everything that must be equal in the arguments of two calls.
fn group_digest(model: &str, names: &[&str], others: RawJson) -> [u8; 32] {
    let text = |text: &str| RawJson::from_serialize(text).expect("texts are JSON");
    let names: Vec<RawJson> = names.iter().map(|name| text(name)).collect();
    raw_json::digest(&RawJson::from_items(&[
        text(model),
        RawJson::from_items(&names),
        others,
    ]))
}

impl Default for SemanticCache {
    fn default() -> Self {
        Self {
            embedder: RwLock::default(),
            index: SemanticIndex::default(),
            vectors: Cache::new(MAX_VECTORS),
            is_failing: AtomicBool::default(),
        }
    }
}

impl fmt::Debug for SemanticCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SemanticCache")
            .field(
                "model",
                &self
                    .embedder
                    .read()
                    .as_ref()
                    .map(|embedder| embedder.model().to_owned()),
            )
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}
