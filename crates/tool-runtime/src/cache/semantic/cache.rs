//! Semantic cache of a layer: its embedder, and the search for earlier calls.

use std::{
    collections::HashMap,
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
/// Maximum memory for the vectors of texts, in bytes.
const MAX_VECTOR_BYTES: u64 = 16 << 20;

/// Model, and text that it embedded.
type EmbeddedText = (Arc<str>, Arc<str>);

/// Finds the cached results of calls that mean the same.
pub(crate) struct SemanticCache {
    embedder: RwLock<Option<Arc<dyn Embedder>>>,
    index: SemanticIndex,
    /// Vectors of texts that were embedded before, by the model and the text.
    vectors: Cache<EmbeddedText, Arc<[f32]>>,
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

    /// Returns the vectors of texts, and embeds those that are unknown.
    async fn vectors(
        &self,
        cx: &CallContext,
        embedder: &dyn Embedder,
        (model, texts): (&Arc<str>, &[Arc<str>]),
    ) -> Result<Vec<Arc<[f32]>>, String> {
        let mut known: HashMap<&str, Arc<[f32]>> = HashMap::new();
        let mut missing = Vec::new();
        for text in texts {
            match self.vectors.get(&(model.clone(), text.clone())) {
                Some(vector) => {
                    known.insert(text, vector);
                }
                None => missing.push(text.to_string()),
            }
        }
        if !missing.is_empty() {
            // A quarter of the time: the call itself needs the rest.
            let limit = cx.remaining().map_or(LIMIT, |left| LIMIT.min(left / 4));
            let embedded = within(limit, None, pin!(embedder.embed(&missing))).await;
            let embedded = match embedded {
                Some(Ok(vectors)) if vectors.len() == missing.len() => Ok(vectors),
                Some(Ok(vectors)) => Err(format!(
                    "it returned {} vectors for {} texts",
                    vectors.len(),
                    missing.len()
                )),
                Some(Err(error)) => Err(error.to_string()),
                None => Err(format!("it did not answer within {limit:?}")),
            };
            self.report(embedded.as_ref().err());
            let embedded = embedded.map_err(|problem| format!("the embedder failed: {problem}"))?;
            for (text, vector) in missing.iter().zip(embedded) {
                let vector: Arc<[f32]> = vector.into();
                self.vectors
                    .insert((model.clone(), text.as_str().into()), vector.clone());
                known.insert(text, vector);
            }
        }
        Ok(texts.iter().map(|text| known[&**text].clone()).collect())
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
        let vectors = Cache::builder()
            .max_capacity(MAX_VECTOR_BYTES)
            .weigher(|(_, text): &EmbeddedText, vector: &Arc<[f32]>| {
                u32::try_from(text.len() + size_of_val(&**vector)).unwrap_or(u32::MAX)
            })
            .build();
        Self {
            embedder: RwLock::default(),
            index: SemanticIndex::default(),
            vectors,
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
