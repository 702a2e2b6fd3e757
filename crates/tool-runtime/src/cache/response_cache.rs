use std::{fmt, sync::Arc, time::Duration};

use crate::CacheScope;
use moka::sync::Cache;
use tool_core::{Body, CallContext, Instant, Reply};

/// Cache key: everything that must be equal for two calls to share a result (RFC 9111, section 2). It has one field per part
/// instead of one digest of all parts, so that two different keys are never equal.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    arguments: [u8; 32],
    fingerprint: [u8; 32],
    tool: Arc<str>,
    tenant: Arc<str>,
    /// `None` if principals share results.
    principal: Option<Arc<str>>,
    credentials: u64,
    generation: u64,
}

/// Cached reply of an earlier call.
pub(crate) struct CachedReply {
    reply: Reply,
    at: Instant,
}

/// Replies of earlier calls, limited by their size in bytes.
///
/// An entry leaves when it is evicted or replaced, never by its age. Readers compare its age with their own limit, by the clock
/// of calls.
pub(crate) struct ResponseCache(Cache<CacheKey, Arc<CachedReply>>);

/// Approximate size of an entry without its text, in bytes: keys, lists and counters.
const OVERHEAD: usize = 512;

impl CacheKey {
    pub(crate) fn for_call(cx: &CallContext, scope: CacheScope) -> Self {
        let tool = cx.tool();
        let principal = match scope {
            CacheScope::Principal => Some(cx.origin.caller.principal.clone()),
            CacheScope::Shared => None,
        };
        Self {
            arguments: *cx.arguments.digest(),
            fingerprint: *tool.fingerprint(),
            tool: tool.name().clone(),
            tenant: cx.origin.caller.tenant.clone(),
            principal,
            credentials: tool.state().credential_version(),
            generation: tool.generation(),
        }
    }

    /// Returns this key with another digest of the arguments.
    pub(crate) fn with_arguments(&self, arguments: [u8; 32]) -> Self {
        Self {
            arguments,
            ..self.clone()
        }
    }
}

impl CachedReply {
    /// Returns the reply as the tool sent it.
    pub(crate) fn reply(&self) -> Reply {
        self.reply.clone()
    }

    pub(crate) fn age(&self, now: Instant) -> Duration {
        now.since(self.at)
    }

    fn weight(&self) -> usize {
        let meta = self.reply.meta().iter();
        let meta: usize = meta.map(|(key, value)| key.len() + value.len()).sum();
        OVERHEAD + self.reply.raw().len() + meta
    }
}

impl ResponseCache {
    /// Creates an empty cache of at most this many bytes.
    pub(crate) fn new(max_bytes: u64) -> Self {
        let cache = Cache::builder()
            .max_capacity(max_bytes)
            .weigher(|_, cached: &Arc<CachedReply>| u32::try_from(cached.weight()).unwrap_or(u32::MAX))
            .build();
        Self(cache)
    }

    pub(crate) fn get(&self, key: &CacheKey) -> Option<Arc<CachedReply>> {
        self.0.get(key)
    }

    pub(crate) fn insert(&self, key: CacheKey, reply: &Reply, at: Instant) {
        let mut reply = reply.clone();
        // Detached from the message in which the reply arrived, which would otherwise be kept as a whole.
        let (Body::Value(raw) | Body::Result(raw)) = &mut reply.body;
        *raw = raw.detached();
        self.0.insert(key, Arc::new(CachedReply { reply, at }));
    }

    /// Returns the approximate size of all entries, in bytes.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.0.run_pending_tasks();
        self.0.weighted_size()
    }
}

impl fmt::Debug for ResponseCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} replies", self.0.entry_count())
    }
}
