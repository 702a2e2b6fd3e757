//! Resume token: the part of a round's state that belongs to the approval layer, and our keys in `_meta`.

use std::sync::Arc;

use raw_json::RawJson;
use tool_core::{CallContext, Resume};

use super::ApprovalLayer;

/// Prefix of our own members of `_meta`.
const OWN_PREFIX: &str = "dev.toolplane/";

/// Members of `_meta` with the trace of a call (W3C Trace Context).
const TRACE_CONTEXT: [&str; 2] = ["traceparent", "tracestate"];

/// Token that a caller brings back from an earlier round.
pub(super) struct ResumeToken {
    pub(super) handle: Arc<str>,
    /// Number of the tool's own round. `None` if the question was ours.
    pub(super) round: Option<u32>,
    pub(super) resume: Arc<Resume>,
    /// State that belongs to the tool.
    tool_state: Option<RawJson>,
}

impl ResumeToken {
    /// Reads the token from what the caller brings back. Returns `None` if there is none.
    pub(super) fn from_call(cx: &CallContext) -> Option<Self> {
        let resume = cx.extras.resume.clone()?;
        let own = resume.state.as_ref()?.get(ApprovalLayer::META_KEY)?;
        Some(Self {
            handle: own.get("handle")?.string()?.into(),
            round: own.get("round").and_then(|round| round.to().ok()),
            tool_state: resume.state.as_ref()?.get("state"),
            resume,
        })
    }

    /// Returns the part for the tool, or `None` if the tool asked for nothing.
    pub(super) fn for_tool(&self) -> Option<Arc<Resume>> {
        self.round
            .map(|_| Arc::new(Resume::new(self.resume.responses.clone()).with_state(self.tool_state.clone())))
    }
}

/// Returns the state that a caller brings back in the next round.
pub(super) fn resume_state(handle: &str, round: Option<u32>, tool_state: Option<RawJson>) -> RawJson {
    let mut own = vec![("handle", RawJson::from(handle))];
    own.extend(round.map(|round| ("round", RawJson::from(u64::from(round)))));
    let mut members = vec![(ApprovalLayer::META_KEY, RawJson::from_members(&own))];
    members.extend(tool_state.map(|state| ("state", state)));
    RawJson::from_members(&members)
}

/// Removes the handle from the call's `_meta`, and returns it. The backend does not receive it, since it may ask for approvals
/// of its own.
pub(super) fn take_handle(cx: &mut CallContext) -> Option<Arc<str>> {
    let meta = cx.extras.meta.as_ref()?;
    let handle = meta.get(ApprovalLayer::META_KEY)?.string()?;
    cx.extras.meta = meta
        .without_members(&[ApprovalLayer::META_KEY])
        .ok()
        .filter(|left| left.members().next().is_some());
    Some(handle.into())
}

/// Removes the caller's members of `_meta` that are meant for the backend. Our own members and the trace context stay. Returns
/// `false` if there were none to remove.
pub(super) fn drop_foreign_meta(cx: &mut CallContext) -> bool {
    let is_own = |key: &str| key.starts_with(OWN_PREFIX) || TRACE_CONTEXT.contains(&key);
    let Some(meta) = cx
        .extras
        .meta
        .take_if(|meta| meta.parts().any(|(key, _)| !is_own(&key)))
    else {
        return false;
    };
    let foreign: Vec<_> = meta
        .parts()
        .map(|(key, _)| key)
        .filter(|key| !is_own(key))
        .collect();
    let foreign: Vec<&str> = foreign.iter().map(|key| &**key).collect();
    let left = meta.without_members(&foreign).ok();
    cx.extras.meta = left.filter(|left| left.members().next().is_some());
    true
}
