use std::{fmt, sync::Arc};

use tool_core::{ApprovalListener, ApprovalRecord, ApprovalState, Approvals, ApprovalsError, Clock};

/// Desk at which people, or programs on their behalf, review and decide calls that wait for approval. Clones share it.
#[derive(Clone)]
pub struct ApprovalDesk {
    approvals: Arc<dyn Approvals>,
    news: Arc<[Arc<dyn ApprovalListener>]>,
    clock: Arc<dyn Clock>,
}

/// Decision about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalVerdict {
    /// The call may be made, once.
    Approve,
    /// The call must not be made.
    Deny {
        /// Reason for the caller.
        reason: Option<String>,
    },
}

/// Error of a decision that does not count.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecideError {
    /// No approval has this handle, or no longer.
    #[error("there is no approval `{handle}`: it has expired, was used, or was never requested")]
    Unknown {
        /// The handle.
        handle: String,
    },
    /// Somebody else decided first.
    #[error("`{handle}` is {state} already")]
    Decided {
        /// The handle.
        handle: String,
        /// State of the approval.
        state: &'static str,
    },
    /// The caller must not approve the call.
    #[error("`{by}` requested `{handle}` and cannot approve it: somebody else must")]
    OwnCall {
        /// The handle.
        handle: String,
        /// Caller who tried to decide.
        by: String,
    },
    /// The store failed.
    #[error("the decision is not stored")]
    Store(#[from] ApprovalsError),
}

impl ApprovalDesk {
    /// Creates a desk for the approvals in this store. `news` is notified of each requested and decided approval.
    #[must_use]
    pub fn new(
        approvals: Arc<dyn Approvals>,
        news: impl IntoIterator<Item = Arc<dyn ApprovalListener>>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            approvals,
            news: news.into_iter().collect(),
            clock,
        }
    }

    /// Returns the requested approvals that have not expired, the oldest first, with their decisions.
    ///
    /// # Cancellation
    /// Dropping the future changes nothing.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn list(&self) -> Result<Vec<ApprovalRecord>, ApprovalsError> {
        let now = self.clock.now();
        let mut all = self.approvals.list().await?;
        all.retain(|approval| approval.expiry > now && is_shown(&approval.state));
        Ok(all)
    }

    /// Returns the approval of this handle.
    ///
    /// # Cancellation
    /// Dropping the future changes nothing.
    ///
    /// # Errors
    /// [`DecideError::Unknown`] if there is none, or [`DecideError::Store`].
    pub async fn get(&self, handle: &str) -> Result<ApprovalRecord, DecideError> {
        let found = self.approvals.get(handle).await?;
        let now = self.clock.now();
        found
            .filter(|approval| approval.expiry > now && is_shown(&approval.state))
            .ok_or_else(|| DecideError::Unknown {
                handle: handle.to_owned(),
            })
    }

    /// Records a decision on behalf of `by`. A decision is final.
    ///
    /// # Cancellation
    /// If the future is dropped, the store may have the decision or not: [`ApprovalDesk::get`] tells. Listeners are not notified
    /// then.
    ///
    /// # Errors
    /// If the approval is unknown or decided already, if `by` must not decide, or if the store fails.
    pub async fn decide(
        &self,
        handle: &str,
        verdict: ApprovalVerdict,
        by: &str,
    ) -> Result<ApprovalRecord, DecideError> {
        let approval = self.get(handle).await?;
        if !approval.state.is_undecided() {
            return Err(decided(&approval));
        }
        // The caller may still withdraw the call.
        if approval.call.by_another && *by == *approval.call.principal && verdict == ApprovalVerdict::Approve
        {
            return Err(DecideError::OwnCall {
                handle: handle.to_owned(),
                by: by.to_owned(),
            });
        }
        let by = by.into();
        let state = match verdict {
            ApprovalVerdict::Approve => ApprovalState::Approved { by },
            ApprovalVerdict::Deny { reason } => ApprovalState::Denied { by, reason },
        };
        let known = approval.state.clone();
        let new = approval.with_state(state);
        if !self.approvals.replace(&known, new.clone()).await? {
            return Err(decided(&self.get(handle).await?));
        }
        self.notify(&new);
        Ok(new)
    }

    pub(crate) fn approvals(&self) -> &dyn Approvals {
        &*self.approvals
    }

    pub(crate) fn notify(&self, approval: &ApprovalRecord) {
        for news in &*self.news {
            news.approval_changed(approval);
        }
    }
}

/// Returns `true` if an approval waits for a decision or was decided. One that is in use is not shown.
fn is_shown(state: &ApprovalState) -> bool {
    state.is_open() || state.is_undecided()
}

fn decided(approval: &ApprovalRecord) -> DecideError {
    DecideError::Decided {
        handle: approval.handle.to_string(),
        state: approval.state.as_str(),
    }
}

impl fmt::Debug for ApprovalDesk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApprovalDesk")
            .field("n_news", &self.news.len())
            .finish_non_exhaustive()
    }
}
