use std::{sync::Arc, time::SystemTime};

use raw_json::RawJson;

use crate::{BoxFuture, Instant};

/// A call that somebody must approve, and how far that is. It is good for one call, by this caller, of this tool as it
/// is, with these arguments, under this policy, until it expires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRecord {
    /// What it is known by: random, but no secret.
    pub handle: Arc<str>,
    /// Who is to call and what with.
    pub call: Arc<ApprovalCall>,
    /// Until when it counts, by the clock of calls.
    pub expiry: Instant,
    /// How far it is.
    pub state: ApprovalState,
}

/// What an [`ApprovalRecord`] is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalCall {
    /// What is called, by the name that agents see.
    pub tool: Arc<str>,
    /// The tool's version, if it has one.
    pub version: Option<String>,
    /// With which arguments, as the caller wrote them.
    pub arguments: RawJson,
    /// On whose behalf.
    pub principal: Arc<str>,
    /// Whose data and limits apply.
    pub tenant: Arc<str>,
    /// What the operator says of the tool that matters for the decision, a line each.
    pub risks: Vec<String>,
    /// Why it needs approval.
    pub reason: String,
    /// Whether somebody else than the caller must decide.
    pub by_another: bool,
    /// When it was asked for, for people.
    pub asked_at: SystemTime,
    /// Until when it counts, for people.
    pub expires_at: SystemTime,
    /// What identifies the tool as it is: how it is described, and what runs it.
    pub tool_digest: [u8; 32],
    /// What identifies the arguments.
    pub arguments_digest: [u8; 32],
    /// What identifies the policy.
    pub policy_digest: [u8; 32],
}

/// How far an [`ApprovalRecord`] is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApprovalState {
    /// Nobody has decided.
    Pending,
    /// Nobody has decided, and the person at the client of the one call that it is for is asked.
    Asked,
    /// The call may be made.
    Approved {
        /// Who said so.
        by: Arc<str>,
    },
    /// The call must not be made.
    Denied {
        /// Who said so.
        by: Arc<str>,
        /// Why, for the caller.
        reason: Option<String>,
    },
    /// The call is made now, in this round.
    Running {
        /// The round, from 0.
        round: u32,
    },
    /// The tool needs something from the caller before the call goes on with this round.
    Waiting {
        /// The round, from 1.
        round: u32,
    },
    /// It was used, or given up: it is good for nothing any more.
    Ended,
}

/// Where approvals are kept: the port through which those who ask and those who decide meet.
///
/// What a state means, and who may change it, is not its business; it makes sure that two who change the same approval
/// at the same time do not both succeed.
pub trait Approvals: Send + Sync {
    /// Keeps an approval that is asked for, unless one for the same call is [open](ApprovalState::is_open) already and
    /// has not expired by `now`. The answer is the one that is kept.
    ///
    /// # Errors
    /// When there is no room for it, or the store does not work.
    fn ask(
        &self,
        approval: ApprovalRecord,
        now: Instant,
    ) -> BoxFuture<'_, Result<ApprovalRecord, ApprovalsError>>;

    /// The approval of this handle.
    ///
    /// # Errors
    /// When the store does not work.
    fn get<'a>(&'a self, handle: &'a str) -> BoxFuture<'a, Result<Option<ApprovalRecord>, ApprovalsError>>;

    /// Every approval that is kept, the oldest first.
    ///
    /// # Errors
    /// When the store does not work.
    fn list(&self) -> BoxFuture<'_, Result<Vec<ApprovalRecord>, ApprovalsError>>;

    /// Puts `new` in the place of the approval of the same handle, if that is still in the state `known`. The answer
    /// tells whether it was. One that has [ended](ApprovalState::Ended) may be forgotten.
    ///
    /// # Errors
    /// When the store does not work.
    fn replace<'a>(
        &'a self,
        known: &'a ApprovalState,
        new: ApprovalRecord,
    ) -> BoxFuture<'a, Result<bool, ApprovalsError>>;
}

/// Why an approval can be neither kept nor found. Then nothing is approved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApprovalsError {
    /// As many as there is room for wait already.
    #[error("{waiting} approvals of {whose} wait already")]
    Full {
        /// How many.
        waiting: usize,
        /// Of one caller, or of all.
        whose: &'static str,
    },
    /// The store does not work.
    #[error("approvals cannot be kept: {0}")]
    Unavailable(String),
}

/// Is told of approvals that are asked for or decided, such as to call somebody.
pub trait ApprovalNews: Send + Sync {
    /// An approval is asked for, or was decided. It must not block.
    fn told(&self, approval: &ApprovalRecord);
}

impl ApprovalState {
    /// Whether any call that it is for can still be made with it, or is refused by it.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Pending | Self::Approved { .. } | Self::Denied { .. })
    }

    /// Whether somebody can still decide.
    #[must_use]
    pub const fn is_undecided(&self) -> bool {
        matches!(self, Self::Pending | Self::Asked)
    }

    /// The word for it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Pending | Self::Asked => "pending",
            Self::Approved { .. } => "approved",
            Self::Denied { .. } => "denied",
            Self::Running { .. } | Self::Waiting { .. } => "running",
            Self::Ended => "ended",
        }
    }
}

impl ApprovalCall {
    /// Whether an approval of this call is one of the other: the same caller, tool, arguments and policy.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.tool == other.tool
            && self.principal == other.principal
            && self.tenant == other.tenant
            && self.tool_digest == other.tool_digest
            && self.arguments_digest == other.arguments_digest
            && self.policy_digest == other.policy_digest
            && self.by_another == other.by_another
    }
}
