use std::{fmt, sync::Arc, time::Duration};

use crate::CacheScope;
use moka::sync::Cache;
use tool_core::{Body, CallContext, Instant, Reply};

/// What makes two calls the same: one part for everything that their answer may depend on. Parts and not one digest of
/// all, so that no two keys can be mistaken for each other.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    arguments: [u8; 32],
    fingerprint: [u8; 32],
    tool: Arc<str>,
    tenant: Arc<str>,
    /// Nothing where principals share.
    principal: Option<Arc<str>>,
    credentials: u64,
    generation: u64,
}

/// An answer that is kept.
pub(crate) struct Answer {
    reply: Reply,
    at: Instant,
}

/// Answers of earlier calls, as many as fit into a number of bytes.
///
/// How old an answer may be is for whoever asks to say, by the clock of calls: what is kept here leaves to make room, or
/// when it is replaced, not by time.
pub(crate) struct Answers(Cache<Key, Arc<Answer>>);

/// What an entry takes beside its text, about: keys, lists, counters.
const OVERHEAD: usize = 512;

impl Key {
    pub(crate) fn of(cx: &CallContext, scope: CacheScope) -> Self {
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
}

impl Answer {
    /// The reply as it was given.
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

impl Answers {
    /// None yet, and never more than fit into this many bytes.
    pub(crate) fn new(max_bytes: u64) -> Self {
        let cache = Cache::builder()
            .max_capacity(max_bytes)
            .weigher(|_, answer: &Arc<Answer>| u32::try_from(answer.weight()).unwrap_or(u32::MAX))
            .build();
        Self(cache)
    }

    pub(crate) fn find(&self, key: &Key) -> Option<Arc<Answer>> {
        self.0.get(key)
    }

    pub(crate) fn keep(&self, key: Key, reply: &Reply, at: Instant) {
        let mut reply = reply.clone();
        // Not a part of the message that it came in, which would be kept as a whole.
        let (Body::Value(raw) | Body::Result(raw)) = &mut reply.body;
        *raw = raw.detached();
        self.0.insert(key, Arc::new(Answer { reply, at }));
    }

    /// How many bytes the answers take, about.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.0.run_pending_tasks();
        self.0.weighted_size()
    }
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} answers", self.0.entry_count())
    }
}
