use std::{
    fmt,
    hash::{BuildHasher, Hasher, RandomState},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use crate::{IdempotencySettings, timeout::within};
use raw_json::RawJson;
use tool_core::{
    BoxFuture, CallContext, CallEnd, Claim, ClaimResult, CorrelationId, ErrorKind, Event, Invoke, Layer,
    Ledger, LedgerEntry, LedgerState, NamedLayer, Outcome, Target, ToolError,
};

/// Runs a tool once for all calls with one idempotency key (IETF draft, `Idempotency-Key` header), and records the calls whose
/// outcome is unknown. The records are in a [`Ledger`].
///
/// Acts on every call of a tool. A tool's [`IdempotencySettings`] change for how long outcomes are remembered. The layer repeats
/// nothing itself.
///
/// # Calls with a key
/// The first call with a key is made. A call with the same key, tool and arguments that arrives while the first one runs waits for
/// it, within its own deadline. One that arrives later gets the stored reply, marked with [`IdempotencyLayer::META_KEY`]. The
/// same key with another tool or with other arguments is refused. Keys belong to principals: two of them may use the same key.
///
/// A failure frees the key if the tool cannot have run, or may run again; otherwise the same failure is returned again. If it is
/// unknown whether the tool ran, every call with the key gets this error again, under the same id, and nothing runs, unless the
/// tool may be called again: see [`CallContext::may_be_repeated`].
///
/// A call that waits for input or a decision holds the key until it continues. Another round counts nothing twice.
///
/// # Calls without a key
/// They are recorded only if it is unknown whether the tool ran, and cost nothing otherwise. The outcome of a fallback tool is
/// recorded with the call that it answers.
///
/// # Cancellation
/// A dropped call frees the key, unless it was sent: then it is unknown whether the tool ran.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use tool_core::Layer;
/// use tool_runtime::{IdempotencyLayer, LedgerLimits, MemoryLedger, TokioClock};
///
/// # fn stack<S>(executor: S) {
/// let ledger = MemoryLedger::new(LedgerLimits::default(), Arc::new(TokioClock::new()));
/// let stack = IdempotencyLayer::new(Arc::new(ledger)).layer(executor);
/// # }
/// ```
#[derive(Clone)]
pub struct IdempotencyLayer {
    ledger: Arc<dyn Ledger>,
}

/// Service of [`IdempotencyLayer`].
#[derive(Clone)]
pub struct Idempotency<S> {
    settings: IdempotencyLayer,
    inner: S,
}

impl IdempotencyLayer {
    /// Key in `_meta` of a stored reply. Its value is the id of the ledger entry.
    pub const META_KEY: &'static str = "dev.toolplane/replayed";

    /// Creates a layer that records calls in this ledger.
    #[must_use]
    pub fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger }
    }
}

impl NamedLayer for IdempotencyLayer {
    const NAME: &'static str = "idempotency";
}

impl<S> Layer<S> for IdempotencyLayer {
    type Invoke = Idempotency<S>;

    fn layer(self, inner: S) -> Idempotency<S> {
        Idempotency {
            settings: self,
            inner,
        }
    }
}

impl<S: Invoke> Invoke for Idempotency<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let IdempotencyLayer { ledger } = &self.settings;
        // Targets other than tools have no effect, so they may be used any number of times.
        if cx.is_dry_run() || !matches!(cx.target, Target::Tool(_)) {
            check_key(cx)?;
            return self.inner.invoke(cx).await;
        }
        // The outcome of a fallback is recorded with the call that it answers, whose id it has.
        if cx.fallback_of.is_some() {
            return self.inner.invoke(cx).await;
        }
        ensure_correlation_id(cx);
        if cx.extras.idempotency_key.is_some() {
            check_key(cx)?;
            if let Some(entry) = claim(&**ledger, cx).await? {
                cx.observers.emit(&Event::replayed(cx));
                return replay(cx, *entry);
            }
        }
        let guard = CallGuard {
            holds_key: cx.extras.ledger_entry_id.is_some(),
            cx,
            ledger: &**ledger,
            is_finished: false,
        };
        let result = self.inner.invoke(guard.cx).await;
        guard.finish(result)
    }
}

fn check_key(cx: &CallContext) -> Result<(), ToolError> {
    match cx.extras.idempotency_key.as_deref().map(Claim::check_key) {
        Some(Err(problem)) => {
            cx.emit_refused(IdempotencyLayer::NAME, "key");
            let message = format!("the idempotency key {problem}");
            Err(ToolError::new(ErrorKind::InvalidArguments, message))
        }
        _ => Ok(()),
    }
}

/// Claims the key for a call. Returns the entry of the earlier call with that key, if there is one.
async fn claim(ledger: &dyn Ledger, cx: &mut CallContext) -> Result<Option<Box<LedgerEntry>>, ToolError> {
    let claim = Claim::for_call(cx, ttl(cx));
    loop {
        match ledger.claim(&claim).await? {
            ClaimResult::Granted(id) => {
                cx.extras.ledger_entry_id = Some(id);
                cx.explain(IdempotencyLayer::NAME, || "claimed the key".to_owned());
                return Ok(None);
            }
            ClaimResult::Running(end) => {
                cx.explain(IdempotencyLayer::NAME, || {
                    "waits for a running call with the same key".to_owned()
                });
                wait_for_end(cx, end).await?;
            }
            ClaimResult::Ended(entry) => return Ok(Some(entry)),
            ClaimResult::Conflict => {
                cx.explain(IdempotencyLayer::NAME, || {
                    "refused: the key belongs to another call".to_owned()
                });
                cx.emit_refused(IdempotencyLayer::NAME, "conflict");
                let message = "the idempotency key was used for a call of another tool or with other \
                               arguments; use a new key";
                return Err(ToolError::new(ErrorKind::InvalidArguments, message));
            }
        }
    }
}

/// Waits for the end of the call with the same key, within this call's deadline.
async fn wait_for_end(cx: &CallContext, end: BoxFuture<'static, ()>) -> Result<(), ToolError> {
    let left = cx.remaining().unwrap_or(Duration::MAX);
    let ended = within(left, cx.origin.ask.as_ref(), pin!(end)).await;
    ended.ok_or_else(|| {
        let message = "a call with the same idempotency key still runs at the call's deadline";
        cx.unanswered(ErrorKind::Timeout, message).ignored_by_health()
    })
}

/// Gives a call an id if whoever made its context gave none. Entries of a ledger are found by it.
fn ensure_correlation_id(cx: &mut CallContext) {
    if cx.correlation_id == CorrelationId(0) {
        let random = || u128::from(RandomState::new().build_hasher().finish());
        cx.correlation_id = CorrelationId(random() << 64 | random());
    }
}

/// Returns the outcome of the earlier call with the same key.
fn replay(cx: &mut CallContext, entry: LedgerEntry) -> Result<Outcome, ToolError> {
    let id = entry.id;
    cx.extras.ledger_entry_id = Some(id);
    cx.explain(IdempotencyLayer::NAME, || {
        format!(
            "replays the call {id} with the same key, which is {}",
            entry.state.as_str()
        )
    });
    match entry.state {
        LedgerState::Answered(Some(mut reply)) => {
            reply.add_meta(IdempotencyLayer::META_KEY, RawJson::from(id.to_string().as_str()));
            Ok(reply.into())
        }
        LedgerState::Failed(error) | LedgerState::Unknown(error) => Err(error),
        LedgerState::Answered(None) => Err(unknown_outcome(
            id,
            "a call with this idempotency key has run already, and its reply is not stored",
        )),
        // A ledger returns no other state as settled.
        _ => Err(unknown_outcome(
            id,
            "the outcome of the call with this idempotency key is unknown",
        )),
    }
}

fn unknown_outcome(id: CorrelationId, message: &str) -> ToolError {
    ToolError::new(ErrorKind::OutcomeUnknown, message).with_ledger_id(id)
}

/// A running call. Records its outcome in the ledger, also when its future is dropped.
struct CallGuard<'a> {
    cx: &'a mut CallContext,
    ledger: &'a dyn Ledger,
    /// `true` if the call has claimed its key.
    holds_key: bool,
    is_finished: bool,
}

impl CallGuard<'_> {
    fn finish(mut self, result: Result<Outcome, ToolError>) -> Result<Outcome, ToolError> {
        self.is_finished = true;
        let result = result.map_err(|error| match error.kind() {
            ErrorKind::OutcomeUnknown => error.with_ledger_id(self.cx.ledger_id()),
            _ => error,
        });
        let is_unknown = |error: &ToolError| error.kind() == ErrorKind::OutcomeUnknown;
        if self.holds_key || result.as_ref().is_err_and(is_unknown) {
            self.settle(settlement(self.cx, &result));
        }
        result
    }

    fn settle(&self, end: CallEnd) {
        match end {
            // A fallback tool may have run, and must not run again, even if this tool may.
            CallEnd::Unknown(error) if self.holds_key && self.cx.side_effect_by_fallback() => {
                self.ledger.settle(self.cx.ledger_id(), CallEnd::Failed(error));
            }
            end if self.holds_key => self.ledger.settle(self.cx.ledger_id(), end),
            CallEnd::Unknown(error) => self.ledger.record(Claim::for_call(self.cx, ttl(self.cx)), error),
            _ => {}
        }
    }
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.settle(settlement_of_cancelled(self.cx));
        }
    }
}

/// Returns the settlement of a call that ended with this result.
fn settlement(cx: &CallContext, result: &Result<Outcome, ToolError>) -> CallEnd {
    match result {
        Ok(Outcome::Reply(reply)) => CallEnd::Answered(Some(reply.clone())),
        Ok(Outcome::Task(_)) => CallEnd::Answered(None),
        Ok(_) => CallEnd::Open,
        Err(error) if error.kind() == ErrorKind::OutcomeUnknown => CallEnd::Unknown(error.clone()),
        Err(_) if !cx.may_have_run() || cx.may_be_repeated() => CallEnd::Free,
        Err(error) => CallEnd::Failed(error.clone()),
    }
}

/// Returns the settlement of a cancelled call. A reply that was not received does not count.
fn settlement_of_cancelled(cx: &CallContext) -> CallEnd {
    if !cx.may_have_run() {
        return CallEnd::Free;
    }
    let message = "the call was cancelled before it was answered; whether the tool ran is not known";
    CallEnd::Unknown(unknown_outcome(cx.ledger_id(), message))
}

impl fmt::Debug for IdempotencyLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyLayer").finish_non_exhaustive()
    }
}

impl<S: fmt::Debug> fmt::Debug for Idempotency<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotency")
            .field("settings", &self.settings)
            .field("inner", &self.inner)
            .finish()
    }
}

/// Time for which the outcome of a call is remembered.
fn ttl(cx: &CallContext) -> Duration {
    let settings = cx.tool().settings().get::<IdempotencySettings>();
    settings.copied().unwrap_or_default().ttl
}
