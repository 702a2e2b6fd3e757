use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{BoxFuture, CallContext, CorrelationId, Reply, ToolError};

/// The port behind which it is remembered what came of calls: of those with an idempotency key, so that a key has its
/// effect once, and of those of which nobody knows whether the tool ran.
///
/// A key belongs to the principal that uses it: others can take the same one and learn nothing from it.
pub trait Ledger: Send + Sync {
    /// Takes a key for a call, or tells what is known of it.
    ///
    /// # Errors
    /// When nothing more can be remembered now. The call is not made then.
    fn claim<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Claimed, ToolError>>;

    /// Writes down what came of the call that the entry was granted to. It returns at once, since it is also called
    /// when a call's future is dropped; a store that takes longer works on by itself.
    fn settle(&self, id: CorrelationId, end: Settled);

    /// Writes down a call without a key of which nobody knows whether the tool ran. As with [`Ledger::settle`], it
    /// returns at once.
    fn record(&self, claim: Claim, unknown: ToolError);

    /// The entry of this id, if it is still there.
    fn find(&self, id: CorrelationId) -> BoxFuture<'_, Option<LedgerEntry>>;

    /// The calls of which nobody knows whether the tool ran, those that began last first, and no more than `limit`.
    fn unknown(&self, limit: usize) -> BoxFuture<'_, Vec<LedgerEntry>>;
}

/// What a call says of itself to a [`Ledger`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claim {
    /// The call's own id: that of the entry, if it makes one.
    pub id: CorrelationId,
    /// Whose data and limits apply.
    pub tenant: Arc<str>,
    /// Who calls.
    pub principal: Arc<str>,
    /// The caller's key, if it gave one.
    pub key: Option<Arc<str>>,
    /// The tool.
    pub tool: Arc<str>,
    /// The digest of the arguments: see [`Arguments::digest`](crate::Arguments::digest).
    pub arguments: [u8; 32],
    /// Whether the tool may run again after a call that came to no answer.
    pub may_repeat: bool,
    /// How long what comes of the call is remembered.
    pub ttl: Duration,
}

/// What a [`Ledger`] says to a claim.
pub enum Claimed {
    /// The call may be made; the id is that of the entry to settle. Another round of a call has the entry of the first.
    Granted(CorrelationId),
    /// A call with this key is under way. The future ends when it is worth asking again.
    Running(BoxFuture<'static, ()>),
    /// This came of the call with this key.
    Settled(Box<LedgerEntry>),
    /// The key was used for a call of another tool or with other arguments.
    Conflict,
}

/// How a call ended, as a [`Ledger`] remembers it.
#[derive(Debug, Clone)]
pub enum Settled {
    /// It did not run, or may run again: the key is free.
    Free,
    /// It is not finished: the same call may go on with the key.
    Open,
    /// It was answered, which is nothing where it became a task: that has an id of its own.
    Answered(Option<Reply>),
    /// It was answered with a failure, and must not run again.
    Failed(ToolError),
    /// Nobody knows whether the tool ran.
    Unknown(ToolError),
}

/// What is remembered of a call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LedgerEntry {
    /// Its id: the correlation id of the call that made it.
    pub id: CorrelationId,
    /// Whose data and limits applied.
    pub tenant: Arc<str>,
    /// Who called.
    pub principal: Arc<str>,
    /// The caller's key, if it gave one.
    pub key: Option<Arc<str>>,
    /// The tool.
    pub tool: Arc<str>,
    /// When it was called.
    pub begun: SystemTime,
    /// What came of it.
    pub state: LedgerState,
}

/// What came of a remembered call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum LedgerState {
    /// It is under way.
    Running,
    /// It waits for another round.
    Open,
    /// It was answered. The answer itself may have been given up for others, or be that of a task.
    Answered(Option<Reply>),
    /// It was answered with a failure.
    Failed(ToolError),
    /// Nobody knows whether the tool ran.
    Unknown(ToolError),
}

impl Claim {
    /// Where a caller gives its key beside the arguments: in `_meta`.
    pub const META_KEY: &'static str = "dev.toolplane/idempotency-key";
    /// The longest key, in bytes.
    pub const MAX_KEY: usize = 255;

    /// What there is to remember of a call, for this time.
    #[must_use]
    pub fn of(cx: &CallContext, ttl: Duration) -> Self {
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

    /// The same claim without its key.
    #[must_use]
    pub fn unkeyed(mut self) -> Self {
        self.key = None;
        self
    }

    /// Checks that a text can be a key: 1 to [`Claim::MAX_KEY`] visible ASCII characters.
    ///
    /// # Errors
    /// What is wrong with it, as a fragment that follows "the idempotency key".
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
    /// What is remembered of the call that made this claim.
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
    /// The word for it over the wire and in lists.
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

impl fmt::Debug for Claimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted(id) => f.debug_tuple("Granted").field(id).finish(),
            Self::Running(_) => f.write_str("Running(..)"),
            Self::Settled(entry) => f.debug_tuple("Settled").field(entry).finish(),
            Self::Conflict => f.write_str("Conflict"),
        }
    }
}
