use parking_lot::Mutex;
use tool_core::{ApprovalRecord, ApprovalState, Approvals, ApprovalsError, BoxFuture, Instant};

/// Approvals that are kept in memory: they are gone with the process, and so are the calls that wait for them.
///
/// No more are kept than there is room for. None is forgotten to make room for another before it expires, since who
/// asks often enough could otherwise get rid of what others wait for: what finds no room is refused.
#[derive(Debug)]
pub struct MemoryApprovals {
    max_total: usize,
    max_of_principal: usize,
    kept: Mutex<Vec<ApprovalRecord>>,
}

impl MemoryApprovals {
    /// Room for so many in all, and for so many of one principal.
    #[must_use]
    pub fn new(max_total: usize, max_of_principal: usize) -> Self {
        Self {
            max_total,
            max_of_principal,
            kept: Mutex::default(),
        }
    }

    fn ask_now(&self, approval: ApprovalRecord, now: Instant) -> Result<ApprovalRecord, ApprovalsError> {
        let mut kept = self.kept.lock();
        kept.retain(|known| known.expiry > now && known.state != ApprovalState::Ended);
        let is_same = |known: &&ApprovalRecord| known.state.is_open() && known.call.is_same(&approval.call);
        if let Some(known) = kept.iter().find(is_same) {
            return Ok(known.clone());
        }
        let call = &approval.call;
        let is_own = |known: &&ApprovalRecord| {
            known.call.principal == call.principal && known.call.tenant == call.tenant
        };
        let n_own = kept.iter().filter(is_own).count();
        for (waiting, max, whose) in [
            (n_own, self.max_of_principal, "this caller"),
            (kept.len(), self.max_total, "all callers"),
        ] {
            if waiting >= max {
                return Err(ApprovalsError::Full { waiting, whose });
            }
        }
        kept.push(approval.clone());
        Ok(approval)
    }

    fn replace_now(&self, state: &ApprovalState, new: ApprovalRecord) -> bool {
        let mut kept = self.kept.lock();
        let known = kept.iter().position(|known| known.handle == new.handle);
        let Some(at) = known.filter(|at| kept[*at].state == *state) else {
            return false;
        };
        if new.state == ApprovalState::Ended {
            kept.remove(at);
        } else {
            kept[at] = new;
        }
        true
    }
}

/// Room for 256 in all, and for 32 of one principal.
impl Default for MemoryApprovals {
    fn default() -> Self {
        Self::new(256, 32)
    }
}

impl Approvals for MemoryApprovals {
    fn ask(
        &self,
        approval: ApprovalRecord,
        now: Instant,
    ) -> BoxFuture<'_, Result<ApprovalRecord, ApprovalsError>> {
        Box::pin(async move { self.ask_now(approval, now) })
    }

    fn get<'a>(&'a self, handle: &'a str) -> BoxFuture<'a, Result<Option<ApprovalRecord>, ApprovalsError>> {
        Box::pin(async move {
            Ok(self
                .kept
                .lock()
                .iter()
                .find(|known| *known.handle == *handle)
                .cloned())
        })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<ApprovalRecord>, ApprovalsError>> {
        Box::pin(async move { Ok(self.kept.lock().clone()) })
    }

    fn replace<'a>(
        &'a self,
        known: &'a ApprovalState,
        new: ApprovalRecord,
    ) -> BoxFuture<'a, Result<bool, ApprovalsError>> {
        Box::pin(async move { Ok(self.replace_now(known, new)) })
    }
}
