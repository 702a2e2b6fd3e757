use std::{error::Error, fmt, sync::Arc, time::Duration};

use raw_json::RawJson;

use crate::{CorrelationId, RetryAfter};

/// Why a call did not give a result. Layers match on [`ToolError::kind`], never on the text.
#[derive(Clone)]
pub struct ToolError(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    source: Option<Arc<dyn Error + Send + Sync>>,
    retry_after: Option<Duration>,
    no_retry: bool,
    no_sign: bool,
    may_have_run: bool,
    detail: Option<RawJson>,
    ledger_id: Option<CorrelationId>,
    advice: Option<Arc<str>>,
    log_message: Option<String>,
}

/// What kind of failure a [`ToolError`] is. The methods are the one table of what follows from a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The arguments do not fit the tool's input schema, or its upstream does not take them.
    InvalidArguments,
    /// The tool's result does not fit its output schema.
    ResultInvalid,
    /// There is no such tool, or none that the caller may know of; or its upstream does not know what is asked for.
    NotFound,
    /// A policy refuses the call.
    Denied,
    /// The upstream does not accept our credentials.
    Auth,
    /// A rate limit, ours or the upstream's, is reached.
    RateLimited,
    /// Too much is queued already; nothing was sent.
    Overloaded,
    /// The upstream cannot be reached or is held back after failures.
    Unavailable,
    /// The deadline has passed.
    Timeout,
    /// The caller has withdrawn the call.
    Cancelled,
    /// The upstream has answered with an error.
    UpstreamError,
    /// The upstream broke its protocol.
    Protocol,
    /// The result is larger than allowed.
    ResultTooLarge,
    /// Whether the tool ran is not known, and it must not run twice.
    OutcomeUnknown,
    /// The tool is no longer what was approved.
    ToolChanged,
    /// The tool needs something of the caller's client that this did not declare: no later call helps either.
    MissingCapability,
    /// A fault of ours.
    Internal,
}

/// The coarse classes that error policies are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Category {
    /// May pass by itself: time-outs, lost connections, failing servers.
    Transient,
    /// Passes when one waits as told.
    RateLimit,
    /// Needs other credentials.
    Authentication,
    /// Needs other arguments, or another tool.
    Validation,
    /// Nothing is known of it.
    Unknown,
}

/// One row of the table: what follows from a kind.
struct Row {
    name: &'static str,
    category: Category,
    retryable: bool,
    counts_for_breaker: bool,
    counts_for_health: bool,
    degrades: bool,
    alerts: bool,
    advice: &'static str,
}

/// What follows from each kind, in the order of [`ErrorKind`].
#[rustfmt::skip]
const TABLE: [Row; ErrorKind::ALL.len()] = {
    use Category::{Authentication, RateLimit, Transient, Unknown, Validation};
    #[expect(clippy::too_many_arguments, reason = "a row of the table")]
    const fn row(name: &'static str, category: Category, retryable: bool, counts_for_breaker: bool, counts_for_health: bool, degrades: bool, alerts: bool, advice: &'static str) -> Row {
        Row { name, category, retryable, counts_for_breaker, counts_for_health, degrades, alerts, advice }
    }
    [
        //   name                 category        retryable  breaker health ladder alert  advice to a model
        row("invalid_arguments",  Validation,     false, false, false, false, false, "correct the arguments and call again"),
        row("result_invalid",     Unknown,        false, true,  true,  true,  true,  "the tool answered in a form it does not declare; try another tool"),
        row("not_found",          Validation,     false, false, false, false, false, "list the tools and use a name from the list"),
        row("denied",             Validation,     false, false, false, false, false, "do not call this again; a policy forbids it"),
        row("auth",               Authentication, false, false, true,  true,  false, "the operator must renew the tool's credentials"),
        row("rate_limited",       RateLimit,      true,  false, false, true,  false, "wait before calling again"),
        row("overloaded",         RateLimit,      true,  false, false, true,  false, "wait a moment and call again"),
        row("unavailable",        Transient,      true,  true,  true,  true,  false, "call again later or use another tool"),
        row("timeout",            Transient,      true,  true,  true,  true,  false, "call again with less to do, or later"),
        row("cancelled",          Unknown,        false, false, false, false, false, "the call was withdrawn"),
        row("upstream_error",     Transient,      true,  true,  true,  true,  false, "read the message; call again later if it may pass"),
        row("protocol",           Transient,      false, true,  true,  true,  false, "the tool's server misbehaves; use another tool"),
        row("result_too_large",   Validation,     false, false, false, false, false, "ask for less at once"),
        row("outcome_unknown",    Unknown,        false, true,  true,  false, true,  "the tool may have run; check its effect before calling again"),
        row("tool_changed",       Validation,     false, false, false, false, false, "list the tools again; this one has changed"),
        row("missing_capability", Validation,     false, false, false, false, false, "this client cannot do what the tool needs; use another tool"),
        row("internal",           Unknown,        false, false, false, false, true,  "this is a fault of the gateway; report it"),
    ]
};

impl ErrorKind {
    /// Every kind, in the order of the table.
    pub const ALL: [Self; 17] = [
        Self::InvalidArguments,
        Self::ResultInvalid,
        Self::NotFound,
        Self::Denied,
        Self::Auth,
        Self::RateLimited,
        Self::Overloaded,
        Self::Unavailable,
        Self::Timeout,
        Self::Cancelled,
        Self::UpstreamError,
        Self::Protocol,
        Self::ResultTooLarge,
        Self::OutcomeUnknown,
        Self::ToolChanged,
        Self::MissingCapability,
        Self::Internal,
    ];

    const fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The name that goes over the wire and into records, such as `invalid_arguments`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().name
    }

    /// The class that an error policy is written in.
    #[must_use]
    pub const fn category(self) -> Category {
        self.row().category
    }

    /// Whether the same call may succeed later. Whether it may be sent again is another question: see
    /// [`Dispatch`](crate::Dispatch).
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        self.row().retryable
    }

    /// Whether it is a sign that the upstream is ill.
    #[must_use]
    pub const fn counts_for_breaker(self) -> bool {
        self.row().counts_for_breaker
    }

    /// Whether an attempt that ends so counts as a failure of the tool in its health. Beside what counts for a breaker
    /// these are refused credentials: holding the tool back would not help, but it does not work. What does not count is
    /// the caller's doing, or ours.
    #[must_use]
    pub const fn counts_for_health(self) -> bool {
        self.row().counts_for_health
    }

    /// Whether something else may be given in the place of the answer, where the tool's ladder says what: see
    /// `FailureStep` in `tool-runtime`. Not where other arguments or a permission are needed, where somebody withdrew
    /// the call, or where nobody knows what the tool did.
    #[must_use]
    pub const fn degrades(self) -> bool {
        self.row().degrades
    }

    /// Whether an operator is told of it, if not of every single one: it should not happen, or somebody has to look.
    /// Refused credentials have an alert of their own, when a tool is switched off for them.
    #[must_use]
    pub const fn alerts(self) -> bool {
        self.row().alerts
    }

    /// The kind of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// What a model should do about it, in words made for it.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        self.row().advice
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl ToolError {
    /// An error of this kind. The message is a lower-case fragment that may be shown to a model: no secrets, no
    /// internal addresses.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            source: None,
            retry_after: None,
            no_retry: false,
            no_sign: false,
            may_have_run: false,
            detail: None,
            ledger_id: None,
            advice: None,
            log_message: None,
        }))
    }

    /// The same error in other words.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.0.message = message.into();
        self
    }

    /// Sets the text that logs show in place of the message: for a message that holds values of the caller.
    #[must_use]
    pub fn with_log_message(mut self, message: impl Into<String>) -> Self {
        self.0.log_message = Some(message.into());
        self
    }

    /// Text that logs show in place of the message; the message itself if absent.
    #[must_use]
    pub fn log_message(&self) -> Option<&str> {
        self.0.log_message.as_deref()
    }

    /// The same error with what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// The same error with the time after which a retry makes sense.
    #[must_use]
    pub fn with_retry_after(mut self, after: Duration) -> Self {
        self.0.retry_after = Some(after);
        self
    }

    /// The same error with what the upstream says of when it may be asked again.
    #[must_use]
    pub fn with_told(self, told: RetryAfter) -> Self {
        match told {
            RetryAfter::In(wait) => self.with_retry_after(wait),
            RetryAfter::Never => self.with_no_retry(),
        }
    }

    /// The same error, which another attempt of this very call does not help: the upstream said so, or a layer holds
    /// the tool back. What the caller may do later is for [`ToolError::retry_after`] to say.
    #[must_use]
    pub fn with_no_retry(mut self) -> Self {
        self.0.no_retry = true;
        self
    }

    /// The same error, which is no sign that anything is ill, whatever its kind says: it counts for no breaker and for no
    /// health.
    #[must_use]
    pub fn ignored_by_health(mut self) -> Self {
        self.0.no_sign = true;
        self
    }

    /// The same error, after which the tool may have run, and must not run twice: see
    /// [`CallContext::may_have_run`](crate::CallContext::may_have_run).
    #[must_use]
    pub fn with_may_have_run(mut self) -> Self {
        self.0.may_have_run = true;
        self
    }

    /// The same error with what the upstream said about it, as data.
    #[must_use]
    pub fn with_detail(mut self, detail: RawJson) -> Self {
        self.0.detail = Some(detail);
        self
    }

    /// The same error with the id under which is remembered what is known of the call: see
    /// [`Ledger`](crate::Ledger).
    #[must_use]
    pub fn with_ledger_id(mut self, id: CorrelationId) -> Self {
        self.0.ledger_id = Some(id);
        self
    }

    /// The same error in other words, with the first as its cause: what a caller is told may say less than what an
    /// operator reads.
    #[must_use]
    pub fn reworded(self, message: impl Into<String>) -> Self {
        let mut told = Self(self.0.clone());
        told.0.message = message.into();
        told.with_source(self)
    }

    /// The same error with other advice than that of its kind.
    #[must_use]
    pub fn with_advice(mut self, advice: Arc<str>) -> Self {
        self.0.advice = Some(advice);
        self
    }

    /// What a model should do about it. An error that invites another call does not if the tool may have run.
    #[must_use]
    pub fn advice(&self) -> &str {
        let kind = match self.kind() {
            kind if kind.is_retryable() && self.may_have_run() => ErrorKind::OutcomeUnknown,
            kind => kind,
        };
        self.0.advice.as_deref().unwrap_or(kind.advice())
    }

    /// The same error without what the upstream said about it as data.
    #[must_use]
    pub fn without_detail(mut self) -> Self {
        self.0.detail = None;
        self
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What went wrong, in words.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// How long to wait before a retry, if the upstream or a limit said so.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Whether another attempt of this very call may help: see [`ToolError::with_no_retry`].
    #[must_use]
    pub fn allows_retry(&self) -> bool {
        !self.0.no_retry
    }

    /// Whether it counts as its kind says: see [`ToolError::ignored_by_health`].
    #[must_use]
    pub fn counts_for_health(&self) -> bool {
        !self.0.no_sign
    }

    /// Whether the tool may have run, and must not run twice: see [`ToolError::with_may_have_run`].
    #[must_use]
    pub fn may_have_run(&self) -> bool {
        self.0.may_have_run || self.0.kind == ErrorKind::OutcomeUnknown
    }

    /// Under which id is remembered what is known of the call.
    #[must_use]
    pub fn ledger_id(&self) -> Option<CorrelationId> {
        self.0.ledger_id
    }

    /// What the upstream said about it, as data.
    #[must_use]
    pub fn detail(&self) -> Option<&RawJson> {
        self.0.detail.as_ref()
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolError")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("source", &self.0.source)
            .field("retry_after", &self.0.retry_after)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl Error for ToolError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|source| source as &(dyn Error + 'static))
    }
}
