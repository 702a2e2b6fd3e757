//! Cached lists of servers.

use std::{borrow::Cow, cell::Cell, fmt, future::ready, io, sync::Arc};

use tool_core::{BoxFuture, KeptTexts};
use tool_exec_mcp::{CachedLists, ListCache, ListCacheKey};
use tool_policy::Redactor;

/// [`ListCache`] in a store of texts, such as the database of the tools. Gateways on one database share the lists.
#[derive(Clone)]
pub struct StoredListCache(Arc<dyn KeptTexts>);

/// Maximum size of the text of one server, in bytes. Larger lists are not stored.
const MAX_BYTES: usize = 16 << 20;

impl StoredListCache {
    /// Creates a cache in this store.
    #[must_use]
    pub fn new(texts: Arc<dyn KeptTexts>) -> Self {
        Self(texts)
    }
}

impl ListCache for StoredListCache {
    fn load<'a>(&'a self, keys: &'a [ListCacheKey]) -> BoxFuture<'a, Vec<Option<CachedLists>>> {
        Box::pin(async move {
            let text_keys: Vec<_> = keys.iter().map(text_key).collect();
            let texts = self.0.load(&text_keys).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "cached lists are not used");
                Vec::new()
            });
            let mut lists: Vec<_> = keys
                .iter()
                .zip(texts)
                .map(|(key, text)| read(key, text?))
                .collect();
            lists.resize(keys.len(), None);
            lists
        })
    }

    fn save(&self, key: ListCacheKey, lists: CachedLists) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let text = lists.to_text(&key);
            let server = key.server();
            if text.len() > MAX_BYTES {
                tracing::debug!(server, "the lists of a server are too large to be stored");
                // The stored lists are no longer those of the server.
                let _ = self.0.save(text_key(&key), String::new()).await;
                return;
            }
            if let Err(error) = self.0.save(text_key(&key), text).await {
                tracing::warn!(server, %error, "the lists of a server cannot be stored");
            }
        })
    }

    fn forget<'a>(&'a self, server: Option<&'a str>) -> BoxFuture<'a, io::Result<usize>> {
        Box::pin(async move { self.0.forget(server).await.map_err(io::Error::other) })
    }
}

fn text_key(key: &ListCacheKey) -> (String, String) {
    (key.server().to_owned(), key.digest().to_owned())
}

/// Reads stored lists. An empty text stands for lists that are too large.
fn read(key: &ListCacheKey, text: String) -> Option<CachedLists> {
    if text.is_empty() {
        return None;
    }
    let read = CachedLists::from_text(key, text);
    let ignore = |reason| tracing::warn!(server = key.server(), "a cached list is ignored: {reason}");
    read.map_err(ignore).ok()
}

impl fmt::Debug for StoredListCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredListCache").finish_non_exhaustive()
    }
}

/// [`ListCache`] that never receives a known secret: servers may write values that they were given into their lists.
/// Every list passes through it.
///
/// A secret that is too short to be replaced safely keeps the list out of the store.
pub(crate) struct WithoutSecrets {
    pub(crate) inner: Arc<dyn ListCache>,
    pub(crate) redactor: Redactor,
}

impl ListCache for WithoutSecrets {
    fn load<'a>(&'a self, keys: &'a [ListCacheKey]) -> BoxFuture<'a, Vec<Option<CachedLists>>> {
        self.inner.load(keys)
    }

    fn save(&self, key: ListCacheKey, lists: CachedLists) -> BoxFuture<'_, ()> {
        let still_holds = Cell::new(false);
        let lists = lists.map(|value| {
            let hidden = self.redactor.hide_in_json(value);
            let shown = hidden.as_ref().unwrap_or(value);
            still_holds
                .set(still_holds.get() || matches!(self.redactor.hide_known(shown.as_str()), Cow::Owned(_)));
            hidden
        });
        if still_holds.get() {
            let server = key.server();
            tracing::debug!(
                server,
                "the lists of a server are not kept: they hold a short secret"
            );
            return Box::pin(ready(()));
        }
        self.inner.save(key, lists)
    }

    fn forget<'a>(&'a self, server: Option<&'a str>) -> BoxFuture<'a, io::Result<usize>> {
        self.inner.forget(server)
    }
}

impl fmt::Debug for WithoutSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
