//! Cached lists of servers.

use std::{borrow::Cow, cell::Cell, fmt, future::ready, io, sync::Arc};

use tool_core::BoxFuture;
use tool_exec_mcp::{CachedLists, ListCache, ListCacheKey};
use tool_policy::Redactor;

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
