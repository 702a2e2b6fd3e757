use std::sync::Arc;

use raw_json::RawJson;

use crate::{CorrelationId, Resume, TaskMode};

/// Members of a request besides its target and arguments.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RequestExtras {
    /// `_meta` of the request, forwarded to the executor verbatim.
    pub meta: Option<RawJson>,
    /// Unrecognized request members, forwarded to the executor verbatim. Always a JSON object.
    pub extra_params: Option<RawJson>,
    /// Answers to the questions of the previous round, if the call continues one.
    pub resume: Option<Arc<Resume>>,
    /// Permission or request to make the call a task; `None` if the caller needs the result of the call itself.
    pub task: Option<TaskMode>,
    /// Idempotency key of the caller: calls with equal keys have their effect once.
    pub idempotency_key: Option<Arc<str>>,
    /// Ledger entry that this call continues, if it is not the first with its idempotency key: see
    /// [`CallContext::ledger_id`](crate::CallContext::ledger_id).
    pub ledger_entry_id: Option<CorrelationId>,
    /// SHA-256 of the [subject](crate::ApprovalSubject) that was approved, if the call needed an approval and has a subject. A
    /// backend does nothing for another one.
    pub approved_subject: Option<[u8; 32]>,
}

impl RequestExtras {
    /// Returns a copy for a call of another tool: without the members that belong to a round, a task or an effect of
    /// the present call.
    #[must_use]
    pub(super) fn for_fallback(&self) -> Self {
        Self {
            meta: self.meta.clone(),
            extra_params: self.extra_params.clone(),
            ..Self::default()
        }
    }
}
