use parking_lot::Mutex;
use tool_core::{ApprovalRecord, ApprovalState, Approvals, ApprovalsError, BoxFuture, Instant};

/// Store of approvals in memory. They end with the process, as do the calls that wait for them.
///
/// The number of approvals is limited. None is evicted before it expires, since a caller with many requests could otherwise
/// evict those of others: a request without room is refused.
///
/// # Examples
/// ```
/// use tool_policy::MemoryApprovals;
///
/// let approvals = MemoryApprovals::new(1_000, 50);
/// ```
#[derive(Debug)]
pub struct MemoryApprovals {
    max_total: usize,
    max_of_principal: usize,
    records: Mutex<Vec<ApprovalRecord>>,
}

impl MemoryApprovals {
    /// Creates a store with room for `max_total` approvals, and for `max_of_principal` of one principal.
    #[must_use]
    pub fn new(max_total: usize, max_of_principal: usize) -> Self {
        Self {
            max_total,
            max_of_principal,
            records: Mutex::default(),
        }
    }

    fn ask_now(&self, approval: ApprovalRecord, now: Instant) -> Result<ApprovalRecord, ApprovalsError> {
        let mut records = self.records.lock();
        records.retain(|known| known.expiry > now && known.state != ApprovalState::Ended);
        let is_same = |known: &&ApprovalRecord| known.state.is_open() && known.call.is_same(&approval.call);
        if let Some(known) = records.iter().find(is_same) {
            return Ok(known.clone());
        }
        let call = &approval.call;
        let is_own = |known: &&ApprovalRecord| {
            known.call.principal == call.principal && known.call.tenant == call.tenant
        };
        let n_own = records.iter().filter(is_own).count();
        for (waiting, max, whose) in [
            (n_own, self.max_of_principal, "this caller"),
            (records.len(), self.max_total, "all callers"),
        ] {
            if waiting >= max {
                return Err(ApprovalsError::Full { waiting, whose });
            }
        }
        records.push(approval.clone());
        Ok(approval)
    }

    fn replace_now(&self, state: &ApprovalState, new: ApprovalRecord) -> bool {
        let mut records = self.records.lock();
        let known = records.iter().position(|known| known.handle == new.handle);
        let Some(at) = known.filter(|at| records[*at].state == *state) else {
            return false;
        };
        if new.state == ApprovalState::Ended {
            records.remove(at);
        } else {
            records[at] = new;
        }
        true
    }
}

impl Default for MemoryApprovals {
    /// Creates a store with room for 256 approvals, and for 32 of one principal.
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
                .records
                .lock()
                .iter()
                .find(|known| *known.handle == *handle)
                .cloned())
        })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<ApprovalRecord>, ApprovalsError>> {
        Box::pin(async move { Ok(self.records.lock().clone()) })
    }

    fn replace<'a>(
        &'a self,
        known: &'a ApprovalState,
        new: ApprovalRecord,
    ) -> BoxFuture<'a, Result<bool, ApprovalsError>> {
        Box::pin(async move { Ok(self.replace_now(known, new)) })
    }
}
