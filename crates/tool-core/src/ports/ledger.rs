use std::{
    fmt,
    future::ready,
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{BoxFuture, CallContext, CorrelationId, Reply, ToolError};

/// Port to the ledger of calls: those with an idempotency key, so that a key has its effect once, and those whose
/// outcome is unknown.
///
/// A key belongs to its principal. Other principals may use an equal key and learn nothing from it.
///
/// # Intents
/// A ledger that outlives the process can also record a call before it is sent: [`Ledger::intend`]. A call whose process ended
/// before the answer is an unknown outcome then, and not lost. A ledger in memory records no intents: the methods do nothing.
pub trait Ledger: Send + Sync {
    /// Claims a key for a call, or returns the state of the call that has the key.
    ///
    /// # Errors
    /// If the ledger is full. The call is not made then.
    fn claim<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<ClaimResult, ToolError>>;

    /// Records the end of the call that the entry was granted to. Returns at once, since it is also called when a
    /// call's future is dropped; slow storage continues on its own.
    fn settle(&self, id: CorrelationId, end: CallEnd);

    /// Records a call without a key whose outcome is unknown. Returns at once, as [`Ledger::settle`] does.
    fn record(&self, claim: Claim, unknown: ToolError);

    /// Returns the entry with this id, if it still exists.
    fn find(&self, id: CorrelationId) -> BoxFuture<'_, Option<LedgerEntry>>;

    /// Returns up to `limit` calls whose outcome is unknown, most recent first.
    fn unknown(&self, limit: usize) -> BoxFuture<'_, Vec<LedgerEntry>>;

    /// Returns `true` if entries outlive the process.
    fn is_durable(&self) -> bool {
        false
    }

    /// Records that a call is about to be sent. The record is durable when the future completes: if the process ends before
    /// [`Ledger::settle_intent`], the outcome of the call is unknown. An id has one intent at a time, without a key; a further
    /// one replaces it.
    ///
    /// # Cancellation
    /// If the future is dropped, the record may exist. [`Ledger::settle_intent`] must follow in any case.
    ///
    /// # Errors
    /// If the record cannot be written. The call must not be sent then.
    fn intend<'a>(&'a self, _claim: &'a Claim) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(ready(Ok(())))
    }

    /// Records the end of a call that [`Ledger::intend`] recorded. Returns at once, as [`Ledger::settle`] does.
    fn settle_intent(&self, _id: CorrelationId, _end: CallEnd) {}

    /// Writes everything that was recorded, and gives up the calls of this process that are still running: their outcomes
    /// are unknown from now on. Called when the program ends; a failure is logged.
    ///
    /// # Cancellation
    /// If the future is dropped, records that are not written yet are lost with the process, and their calls become unknown
    /// outcomes.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }
}

/// Claim of a call on an entry of a [`Ledger`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claim {
    /// Correlation id of the call: the id of a new entry.
    pub id: CorrelationId,
    /// Tenant of the caller.
    pub tenant: Arc<str>,
    /// Principal of the caller.
    pub principal: Arc<str>,
    /// Idempotency key, if the caller sent one.
    pub key: Option<Arc<str>>,
    /// Name of the tool.
    pub tool: Arc<str>,
    /// Digest of the arguments: see [`Arguments::digest`](crate::Arguments::digest).
    pub arguments: [u8; 32],
    /// `true` if the tool may run again after a call without an answer.
    pub may_repeat: bool,
    /// Time to keep the entry.
    pub ttl: Duration,
}

/// Answer of a [`Ledger`] to a claim.
pub enum ClaimResult {
    /// The call may be made. The id is that of the entry to settle; a further round of a call has the entry of the
    /// first.
    Granted(CorrelationId),
    /// A call with this key is running. The future completes when it is worth claiming again.
    Running(BoxFuture<'static, ()>),
    /// The call with this key has ended.
    Ended(Box<LedgerEntry>),
    /// The key was used for another tool or with other arguments.
    Conflict,
}

/// End of a call, as a [`Ledger`] records it.
#[derive(Debug, Clone)]
pub enum CallEnd {
    /// The tool did not run, or may run again: the key is released.
    Free,
    /// The call is unfinished: a further round may continue with the key.
    Open,
    /// The call was answered. `None` if it became a task, which has an id of its own.
    Answered(Option<Reply>),
    /// The call was answered with a failure and must not run again.
    Failed(ToolError),
    /// The outcome of the call is unknown.
    Unknown(ToolError),
}

/// Entry of a [`Ledger`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LedgerEntry {
    /// Id: the correlation id of the call that created the entry.
    pub id: CorrelationId,
    /// Tenant of the caller.
    pub tenant: Arc<str>,
    /// Principal of the caller.
    pub principal: Arc<str>,
    /// Idempotency key, if the caller sent one.
    pub key: Option<Arc<str>>,
    /// Name of the tool.
    pub tool: Arc<str>,
    /// Time of the call.
    pub begun: SystemTime,
    /// State of the call.
    pub state: LedgerState,
}

/// State of a recorded call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum LedgerState {
    /// The call is running.
    Running,
    /// The call waits for another round.
    Open,
    /// The call was answered. The reply may have been evicted, or belong to a task.
    Answered(Option<Reply>),
    /// The call was answered with a failure.
    Failed(ToolError),
    /// The outcome of the call is unknown.
    Unknown(ToolError),
}

impl Claim {
    /// Key in `_meta` under which a caller sends its idempotency key.
    pub const META_KEY: &'static str = "dev.toolplane/idempotency-key";
    /// Maximum length of a key, in bytes.
    pub const MAX_KEY: usize = 255;

    /// Time for which outcomes are remembered unless a tool's settings say otherwise.
    pub const DEFAULT_TTL: Duration = Duration::from_secs(24 * 60 * 60);

    /// Creates a claim without a key and arguments, of a tool that must not run twice.
    #[must_use]
    pub fn new(
        id: CorrelationId,
        tenant: impl Into<Arc<str>>,
        principal: impl Into<Arc<str>>,
        tool: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            id,
            tenant: tenant.into(),
            principal: principal.into(),
            key: None,
            tool: tool.into(),
            arguments: [0; 32],
            may_repeat: false,
            ttl: Self::DEFAULT_TTL,
        }
    }

    /// Creates the claim of a call.
    #[must_use]
    pub fn for_call(cx: &CallContext, ttl: Duration) -> Self {
        Self {
            id: cx.correlation_id,
            tenant: cx.origin.caller.tenant.clone(),
            principal: cx.origin.caller.principal.clone(),
            key: cx.extras.idempotency_key.clone(),
            tool: cx.tool().name().clone(),
            arguments: *cx.arguments.digest(),
            may_repeat: cx.may_be_repeated(),
            ttl,
        }
    }

    /// Returns the claim without its key.
    #[must_use]
    pub fn unkeyed(mut self) -> Self {
        self.key = None;
        self
    }

    /// Checks that a text is a valid key: 1 to [`Claim::MAX_KEY`] visible ASCII characters.
    ///
    /// # Errors
    /// The broken rule, as a fragment that follows "the idempotency key".
    pub fn check_key(key: &str) -> Result<(), &'static str> {
        if key.is_empty() {
            Err("is empty")
        } else if key.len() > Self::MAX_KEY {
            Err("is longer than 255 characters")
        } else if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            Err("may hold visible ASCII characters only")
        } else {
            Ok(())
        }
    }
}

impl LedgerEntry {
    /// Creates the entry of the call that made this claim.
    #[must_use]
    pub fn new(claim: &Claim, begun: SystemTime, state: LedgerState) -> Self {
        Self {
            id: claim.id,
            tenant: claim.tenant.clone(),
            principal: claim.principal.clone(),
            key: claim.key.clone(),
            tool: claim.tool.clone(),
            begun,
            state,
        }
    }
}

impl LedgerState {
    /// Returns the state as a word for the wire and for lists.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Open => "open",
            Self::Answered(_) => "answered",
            Self::Failed(_) => "failed",
            Self::Unknown(_) => "unknown",
        }
    }
}

impl fmt::Debug for ClaimResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted(id) => f.debug_tuple("Granted").field(id).finish(),
            Self::Running(_) => f.write_str("Running(..)"),
            Self::Ended(entry) => f.debug_tuple("Ended").field(entry).finish(),
            Self::Conflict => f.write_str("Conflict"),
        }
    }
}
