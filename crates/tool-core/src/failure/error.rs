use std::{error::Error, fmt, sync::Arc, time::Duration};

use raw_json::RawJson;

use crate::{CorrelationId, RetryAfter};

/// Error of a call without a result. Layers match on [`ToolError::kind`], never on the text.
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

/// Kind of a [`ToolError`]. Its methods are the one table of consequences of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The arguments do not satisfy the tool's input schema, or the upstream rejects them.
    InvalidArguments,
    /// The tool's result does not satisfy its output schema.
    ResultInvalid,
    /// The tool does not exist or is hidden from the caller, or the upstream does not know the requested item.
    NotFound,
    /// A policy denies the call.
    Denied,
    /// The upstream rejects our credentials.
    Auth,
    /// A rate limit, ours or the upstream's, is exceeded.
    RateLimited,
    /// A queue is full; nothing was sent.
    Overloaded,
    /// The upstream is unreachable, or its circuit breaker is open.
    Unavailable,
    /// The deadline has passed.
    Timeout,
    /// The caller cancelled the call.
    Cancelled,
    /// The upstream answered with an error.
    UpstreamError,
    /// The upstream violated its protocol.
    Protocol,
    /// The result exceeds the size limit.
    ResultTooLarge,
    /// It is unknown whether the tool ran, and it must not run twice.
    OutcomeUnknown,
    /// The definition of the tool differs from the approved one.
    ToolChanged,
    /// The tool needs a capability that the caller's client did not declare. Later calls fail as well.
    MissingCapability,
    /// An error in toolplane itself.
    Internal,
}

/// Coarse categories of failures, for error policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Category {
    /// May pass without intervention: timeouts, lost connections, failing servers.
    Transient,
    /// Passes after the stated time.
    RateLimit,
    /// Needs other credentials.
    Authentication,
    /// Needs other arguments, or another tool.
    Validation,
    /// Unclassified.
    Unknown,
}

impl Category {
    /// Returns the name in the reference.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::RateLimit => "rate limit",
            Self::Authentication => "authentication",
            Self::Validation => "validation",
            Self::Unknown => "unknown",
        }
    }
}

/// Row of the table: the consequences of one kind.
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

/// Consequences of each kind, in the order of [`ErrorKind`].
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
    /// All kinds, in the order of the table.
    pub const ALL: &'static [Self] = &[
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

    /// Returns the name on the wire and in records, such as `invalid_arguments`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().name
    }

    /// Returns the category for error policies.
    #[must_use]
    pub const fn category(self) -> Category {
        self.row().category
    }

    /// Returns `true` if the same call may succeed later. Whether it may be sent again is a different question: see
    /// [`Dispatch`](crate::Dispatch).
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        self.row().retryable
    }

    /// Returns `true` if the failure indicates an unhealthy upstream.
    #[must_use]
    pub const fn counts_for_breaker(self) -> bool {
        self.row().counts_for_breaker
    }

    /// Returns `true` if an attempt that ends with this kind counts as a failure in the tool's health. Besides
    /// failures that count for a breaker, these are rejected credentials: blocking the tool would not help, yet it
    /// does not work. Failures caused by the caller or by toolplane do not count.
    #[must_use]
    pub const fn counts_for_health(self) -> bool {
        self.row().counts_for_health
    }

    /// Returns `true` if a fallback step may replace the answer, as configured by `on_failure`: see
    /// `FailureStep` in `tool-runtime`. `false` if the call needs other arguments or a permission, was cancelled,
    /// or has an unknown outcome.
    #[must_use]
    pub const fn degrades(self) -> bool {
        self.row().degrades
    }

    /// Returns `true` if the failure raises an alert, at a limited rate: it should not happen, or needs an operator.
    /// Rejected credentials have an alert of their own, when the tool is disabled.
    #[must_use]
    pub const fn alerts(self) -> bool {
        self.row().alerts
    }

    /// Returns the kind with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == name)
    }

    /// Returns advice for a model.
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
    /// Creates an error. `message` is a lower-case fragment that may be shown to a model: no secrets, no internal
    /// addresses.
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

    /// Replaces the message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.0.message = message.into();
        self
    }

    /// Sets the text that logs show instead of the message, for a message that contains values of the caller.
    #[must_use]
    pub fn with_log_message(mut self, message: impl Into<String>) -> Self {
        self.0.log_message = Some(message.into());
        self
    }

    /// Returns the text that logs show instead of the message; `None` if logs show the message.
    #[must_use]
    pub fn log_message(&self) -> Option<&str> {
        self.0.log_message.as_deref()
    }

    /// Sets the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Sets the time after which a retry may succeed.
    #[must_use]
    pub fn with_retry_after(mut self, after: Duration) -> Self {
        self.0.retry_after = Some(after);
        self
    }

    /// Applies the retry hint of the upstream.
    #[must_use]
    pub fn with_retry_hint(self, told: RetryAfter) -> Self {
        match told {
            RetryAfter::In(wait) => self.with_retry_after(wait),
            RetryAfter::Never => self.with_no_retry(),
        }
    }

    /// Forbids further attempts of this call: the upstream asked not to retry, or a layer blocks the tool.
    /// [`ToolError::retry_after`] tells when the caller may call again.
    #[must_use]
    pub fn with_no_retry(mut self) -> Self {
        self.0.no_retry = true;
        self
    }

    /// Excludes the error from health and breakers, whatever its kind.
    #[must_use]
    pub fn ignored_by_health(mut self) -> Self {
        self.0.no_sign = true;
        self
    }

    /// Marks that the tool may have run and must not run twice: see
    /// [`CallContext::may_have_run`](crate::CallContext::may_have_run).
    #[must_use]
    pub fn with_may_have_run(mut self) -> Self {
        self.0.may_have_run = true;
        self
    }

    /// Sets the details that the upstream reported, as data.
    #[must_use]
    pub fn with_detail(mut self, detail: RawJson) -> Self {
        self.0.detail = Some(detail);
        self
    }

    /// Sets the id of the call's entry in the [`Ledger`](crate::Ledger).
    #[must_use]
    pub fn with_ledger_id(mut self, id: CorrelationId) -> Self {
        self.0.ledger_id = Some(id);
        self
    }

    /// Returns an error with another message, caused by this one. A caller may learn less than an operator.
    #[must_use]
    pub fn reworded(self, message: impl Into<String>) -> Self {
        let mut told = Self(self.0.clone());
        told.0.message = message.into();
        told.with_source(self)
    }

    /// Replaces the advice of the kind.
    #[must_use]
    pub fn with_advice(mut self, advice: Arc<str>) -> Self {
        self.0.advice = Some(advice);
        self
    }

    /// Returns the advice for a model. It never suggests another call if the tool may have run.
    #[must_use]
    pub fn advice(&self) -> &str {
        let kind = match self.kind() {
            kind if kind.is_retryable() && self.may_have_run() => ErrorKind::OutcomeUnknown,
            kind => kind,
        };
        self.0.advice.as_deref().unwrap_or(kind.advice())
    }

    /// Removes the details that the upstream reported.
    #[must_use]
    pub fn without_detail(mut self) -> Self {
        self.0.detail = None;
        self
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the time to wait before a retry, if the upstream or a limit stated one.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Returns `true` if another attempt of this call may succeed: see [`ToolError::with_no_retry`].
    #[must_use]
    pub fn allows_retry(&self) -> bool {
        !self.0.no_retry
    }

    /// Returns `true` if the error counts for health and breakers as its kind says: see
    /// [`ToolError::ignored_by_health`].
    #[must_use]
    pub fn counts_for_health(&self) -> bool {
        !self.0.no_sign
    }

    /// Returns `true` if the tool may have run and must not run twice: see [`ToolError::with_may_have_run`].
    #[must_use]
    pub fn may_have_run(&self) -> bool {
        self.0.may_have_run || self.0.kind == ErrorKind::OutcomeUnknown
    }

    /// Returns the id of the call's entry in the ledger.
    #[must_use]
    pub fn ledger_id(&self) -> Option<CorrelationId> {
        self.0.ledger_id
    }

    /// Returns the details that the upstream reported, as data.
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
