use std::{sync::Arc, time::SystemTime};

use raw_json::RawJson;

use crate::{BoxFuture, Caller, Instant};

/// Approval of one call: by this caller, of this tool as it is, with these arguments, under this policy, until it
/// expires.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalRecord {
    /// Handle: random, but not secret.
    pub handle: Arc<str>,
    /// Call that the approval is bound to.
    pub call: Arc<ApprovalCall>,
    /// Expiry, by the clock of calls.
    pub expiry: Instant,
    /// State of the approval.
    pub state: ApprovalState,
}

impl ApprovalRecord {
    /// Creates the record of an approval.
    #[must_use]
    pub fn new(handle: Arc<str>, call: Arc<ApprovalCall>, expiry: Instant, state: ApprovalState) -> Self {
        Self {
            handle,
            call,
            expiry,
            state,
        }
    }

    /// Returns the record in another state.
    #[must_use]
    pub fn with_state(self, state: ApprovalState) -> Self {
        Self { state, ..self }
    }
}

/// Call that an [`ApprovalRecord`] is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalCall {
    /// Name of the tool, as agents see it.
    pub tool: Arc<str>,
    /// Version of the tool, if it has one.
    pub version: Option<String>,
    /// Arguments, as the caller wrote them.
    pub arguments: RawJson,
    /// Principal of the caller.
    pub principal: Arc<str>,
    /// Tenant of the caller.
    pub tenant: Arc<str>,
    /// Facts that the operator declared about the tool and that matter for the decision, one line each.
    pub risks: Vec<String>,
    /// Reason why the call needs approval.
    pub reason: String,
    /// Text of what is to be approved beside the arguments, such as code: see [`ApprovalSubject`](crate::ApprovalSubject). Empty
    /// for most tools.
    pub details: String,
    /// `true` if the decision must be made by a person other than the caller.
    pub by_another: bool,
    /// Time of the request for approval, for people.
    pub asked_at: SystemTime,
    /// Time of expiry, for people.
    pub expires_at: SystemTime,
    /// Digest of the tool: its definition and its executor settings.
    pub tool_digest: [u8; 32],
    /// Digest of the arguments.
    pub arguments_digest: [u8; 32],
    /// Digest of the policy.
    pub policy_digest: [u8; 32],
}

impl ApprovalCall {
    /// Creates the call of a tool that needs approval, without version, risks, reason and digests.
    #[must_use]
    pub fn new(
        tool: Arc<str>,
        arguments: RawJson,
        caller: &Caller,
        asked_at: SystemTime,
        expires_at: SystemTime,
    ) -> Self {
        Self {
            tool,
            version: None,
            arguments,
            principal: caller.principal.clone(),
            tenant: caller.tenant.clone(),
            risks: Vec::new(),
            reason: String::new(),
            details: String::new(),
            by_another: false,
            asked_at,
            expires_at,
            tool_digest: [0; 32],
            arguments_digest: [0; 32],
            policy_digest: [0; 32],
        }
    }
}

/// State of an [`ApprovalRecord`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApprovalState {
    /// Undecided.
    Pending,
    /// Undecided; the client of the one call is being asked.
    Asked,
    /// Approved: the call may be made.
    Approved {
        /// Person who approved.
        by: Arc<str>,
    },
    /// Denied: the call must not be made.
    Denied {
        /// Person who denied.
        by: Arc<str>,
        /// Reason for the caller.
        reason: Option<String>,
    },
    /// The call is running in this round.
    Running {
        /// Round, starting at 0.
        round: u32,
    },
    /// The tool needs input from the caller before the call continues with this round.
    Waiting {
        /// Round, starting at 1.
        round: u32,
    },
    /// Used or abandoned: the approval has no effect any more.
    Ended,
}

/// Port to the storage of approvals, which connects requests and decisions.
///
/// The storage does not interpret states. It guarantees that of two concurrent changes of one approval only one
/// succeeds.
pub trait Approvals: Send + Sync {
    /// Stores a request for approval, unless an [open](ApprovalState::is_open) approval of the same call exists that
    /// has not expired by `now`. Returns the stored approval.
    ///
    /// # Errors
    /// If the storage is full or does not work.
    fn ask(
        &self,
        approval: ApprovalRecord,
        now: Instant,
    ) -> BoxFuture<'_, Result<ApprovalRecord, ApprovalsError>>;

    /// Returns the approval with this handle.
    ///
    /// # Errors
    /// If the storage does not work.
    fn get<'a>(&'a self, handle: &'a str) -> BoxFuture<'a, Result<Option<ApprovalRecord>, ApprovalsError>>;

    /// Returns all stored approvals, oldest first.
    ///
    /// # Errors
    /// If the storage does not work.
    fn list(&self) -> BoxFuture<'_, Result<Vec<ApprovalRecord>, ApprovalsError>>;

    /// Replaces the approval with the same handle by `new` if its state is still `known` (compare and swap), and
    /// returns whether it was. An [ended](ApprovalState::Ended) approval may be removed.
    ///
    /// # Errors
    /// If the storage does not work.
    fn replace<'a>(
        &'a self,
        known: &'a ApprovalState,
        new: ApprovalRecord,
    ) -> BoxFuture<'a, Result<bool, ApprovalsError>>;
}

/// Error of the storage of approvals. After it, no call is approved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApprovalsError {
    /// The limit of pending approvals is reached.
    #[error("{waiting} approvals of {whose} wait already")]
    Full {
        /// Number of pending approvals.
        waiting: usize,
        /// Owner of the limit: one caller, or all.
        whose: &'static str,
    },
    /// The storage does not work.
    #[error("approvals cannot be kept: {0}")]
    Unavailable(String),
}

/// Receiver of requested and decided approvals, for example to notify a person.
pub trait ApprovalListener: Send + Sync {
    /// Called when an approval is requested or was decided. Must not block.
    fn approval_changed(&self, approval: &ApprovalRecord);
}

impl ApprovalState {
    /// Returns `true` if the approval still affects its call: the call can be made with it, or is refused by it.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Pending | Self::Approved { .. } | Self::Denied { .. })
    }

    /// Returns `true` if a decision is still possible.
    #[must_use]
    pub const fn is_undecided(&self) -> bool {
        matches!(self, Self::Pending | Self::Asked)
    }

    /// Returns the state as a word.
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
    /// Returns `true` if both calls have the same caller, tool, arguments and policy.
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
