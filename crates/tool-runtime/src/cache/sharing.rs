//! Rules of sharing: which calls bypass the cache, and the context in which shared work runs.

use std::sync::Arc;

use raw_json::RawJson;
use tool_core::{CallContext, DispatchHistory, TaskMode};

use super::CacheLayer;
use crate::RetryLayer;

/// Members of the caller's `_meta` that do not change a result.
const SHAREABLE_META: [&str; 3] = ["traceparent", "tracestate", RetryLayer::META_KEY];

/// Returns the reason for which a call bypasses the cache, or `None` if it may share a result.
pub(super) fn bypass_reason(cx: &CallContext) -> Option<&'static str> {
    if cx.extras.resume.is_some() {
        return Some("the call continues an earlier round");
    }
    if matches!(cx.extras.task, Some(TaskMode::Requested(_))) {
        return Some("the call requests a task");
    }
    if cx.extras.idempotency_key.is_some() {
        return Some("the call has an idempotency key");
    }
    if cx.extras.extra_params.is_some() {
        return Some("the call has extra params");
    }
    let directive = cx
        .extras
        .meta
        .as_ref()
        .and_then(|meta| meta.get(CacheLayer::META_KEY))?;
    (directive.string().as_deref() == Some(CacheLayer::BYPASS)).then_some("the caller requests it")
}

/// Returns the context of shared work: the same call without anything that belongs to its caller alone.
pub(super) fn detached_context(cx: &CallContext, history: Arc<DispatchHistory>) -> CallContext {
    let mut work = cx.fork_detached(history);
    work.extras.meta = cx.extras.meta.as_ref().and_then(shareable_meta);
    work.deadline = None;
    work.origin.client = None;
    work.origin.ask = None;
    work.extras.task = None;
    work
}

fn shareable_meta(meta: &RawJson) -> Option<RawJson> {
    let members = meta.members().filter(|(key, _)| SHAREABLE_META.contains(&&**key));
    let members: Vec<_> = members.collect();
    let members: Vec<_> = members
        .iter()
        .map(|(key, value)| (&**key, value.clone()))
        .collect();
    (!members.is_empty()).then(|| RawJson::from_members(&members))
}
