use std::{fmt, sync::Arc};

use tool_core::{ApprovalListener, ApprovalRecord, ApprovalState, Approvals, ApprovalsError, Clock};

/// Where calls that wait for approval are looked at and decided, by people or by what acts for them. Cloning shares it.
#[derive(Clone)]
pub struct ApprovalDesk {
    approvals: Arc<dyn Approvals>,
    news: Arc<[Arc<dyn ApprovalListener>]>,
    clock: Arc<dyn Clock>,
}

/// What is decided about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalVerdict {
    /// It may be made, once.
    Approve,
    /// It must not be made.
    Deny {
        /// Why, for the caller.
        reason: Option<String>,
    },
}

/// Why a decision does not count.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecideError {
    /// There is none of this handle, or none any more.
    #[error("there is no approval `{handle}`: it has expired, was used, or was never asked for")]
    Unknown {
        /// The handle.
        handle: String,
    },
    /// Somebody was quicker.
    #[error("`{handle}` is {state} already")]
    Decided {
        /// The handle.
        handle: String,
        /// How far it is.
        state: &'static str,
    },
    /// Whoever asks must not decide.
    #[error("`{by}` asks for `{handle}` and so cannot approve it: somebody else must")]
    OwnCall {
        /// The handle.
        handle: String,
        /// Who asks, and tried to decide.
        by: String,
    },
    /// Approvals are not kept.
    #[error("the decision is not kept")]
    Store(#[from] ApprovalsError),
}

impl ApprovalDesk {
    /// A desk for the approvals that are kept here. These are told whenever one is asked for or decided.
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

    /// What is asked for and has not expired, the oldest first, with what was decided about it.
    ///
    /// # Errors
    /// When the store does not work.
    pub async fn list(&self) -> Result<Vec<ApprovalRecord>, ApprovalsError> {
        let now = self.clock.now();
        let mut all = self.approvals.list().await?;
        all.retain(|approval| approval.expiry > now && is_shown(&approval.state));
        Ok(all)
    }

    /// The one of this handle.
    ///
    /// # Errors
    /// [`DecideError::Unknown`] if there is none any more, or [`DecideError::Store`].
    pub async fn get(&self, handle: &str) -> Result<ApprovalRecord, DecideError> {
        let found = self.approvals.get(handle).await?;
        let now = self.clock.now();
        found
            .filter(|approval| approval.expiry > now && is_shown(&approval.state))
            .ok_or_else(|| DecideError::Unknown {
                handle: handle.to_owned(),
            })
    }

    /// Decides, on behalf of `by`. What was decided once stays so.
    ///
    /// # Errors
    /// When there is nothing to be decided, or not by this one.
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
        // Whoever asks may well take it back.
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
        let new = ApprovalRecord { state, ..approval };
        if !self.approvals.replace(&known, new.clone()).await? {
            return Err(decided(&self.get(handle).await?));
        }
        self.tell(&new);
        Ok(new)
    }

    pub(crate) fn approvals(&self) -> &dyn Approvals {
        &*self.approvals
    }

    pub(crate) fn tell(&self, approval: &ApprovalRecord) {
        for news in &*self.news {
            news.told(approval);
        }
    }
}

/// Whether there is, or was, something to decide; what is being used is nobody's business any more.
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
