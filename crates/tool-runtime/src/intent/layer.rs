use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tool_core::{
    CallContext, CallEnd, Claim, CorrelationId, ErrorKind, Invoke, Layer, Ledger, NamedLayer, Outcome,
    Target, ToolError,
};

use super::IntentSettings;
use crate::IdempotencySettings;

/// Records a call in the [`Ledger`] before it is sent (write-ahead logging), so that a call whose gateway dies before the answer
/// is an unknown outcome and not lost.
///
/// Does nothing for a tool until its settings contain [`IntentSettings`] that turn it on, and with a ledger that does not outlive
/// the process. Acts on calls that must not run twice: see [`CallContext::may_be_repeated`]. If the record cannot be written, the
/// call is not made. A call with an idempotency key needs no intent: the ledger has its entry since the key was claimed.
///
/// # Cost
/// Each call waits for one commit of the ledger. Calls that run at once share commits.
///
/// # Order
/// Inside everything that delays, repeats or refuses an attempt, so that an intent is a call that is sent next; outside of
/// observers of attempts, which report an attempt only if it is made.
///
/// # Cancellation
/// A dropped call is unknown if it was sent, and leaves no record otherwise.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use tool_core::{Layer, Ledger};
/// use tool_runtime::IntentLayer;
///
/// # fn stack<S>(ledger: Arc<dyn Ledger>, executor: S) {
/// let stack = IntentLayer::new(ledger).layer(executor);
/// # }
/// ```
#[derive(Clone)]
pub struct IntentLayer {
    ledger: Arc<dyn Ledger>,
    /// `true` once the log says that records would not outlive the process.
    has_warned: Arc<AtomicBool>,
}

/// Service of [`IntentLayer`].
#[derive(Clone)]
pub struct Intent<S> {
    settings: IntentLayer,
    inner: S,
}

impl IntentLayer {
    /// Creates a layer that records intents in this ledger.
    #[must_use]
    pub fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self {
            ledger,
            has_warned: Arc::default(),
        }
    }

    /// Returns `true` if a call needs a record before it is sent.
    fn acts_on(&self, cx: &mut CallContext) -> bool {
        let settings = cx.tool().settings();
        let acts = settings
            .get::<IntentSettings>()
            .is_some_and(|intent| intent.is_on)
            && !cx.is_dry_run()
            && matches!(cx.target, Target::Tool(_))
            && !cx.may_be_repeated()
            && cx.extras.ledger_entry_id.is_none();
        if acts && !self.ledger.is_durable() {
            let problem = "calls are not recorded before they are sent: the ledger ends with the process";
            cx.explain(Self::NAME, || problem.to_owned());
            if !self.has_warned.swap(true, Ordering::Relaxed) {
                tracing::warn!("`intent` has no effect: {problem}; configure a store");
            }
            return false;
        }
        acts
    }
}

impl NamedLayer for IntentLayer {
    const NAME: &'static str = "intent";
}

impl<S> Layer<S> for IntentLayer {
    type Invoke = Intent<S>;

    fn layer(self, inner: S) -> Intent<S> {
        Intent {
            settings: self,
            inner,
        }
    }
}

impl<S: Invoke> Invoke for Intent<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        if !self.settings.acts_on(cx) {
            return self.inner.invoke(cx).await;
        }
        // Boxed, so that calls without an intent do not carry the size of its future.
        Box::pin(self.invoke_recorded(cx)).await
    }
}

impl<S: Invoke> Intent<S> {
    async fn invoke_recorded(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let idempotency = cx.tool().settings().get::<IdempotencySettings>();
        let ttl = idempotency.copied().unwrap_or_default().ttl;
        let claim = Claim::for_call(cx, ttl).unkeyed();
        // Before the record is written: a call that is dropped meanwhile takes it back.
        let guard = IntentGuard {
            ledger: &*self.settings.ledger,
            id: claim.id,
            cx,
            is_finished: false,
        };
        if let Err(error) = self.settings.ledger.intend(&claim).await {
            guard.cx.emit_refused(IntentLayer::NAME, "not_recorded");
            guard
                .cx
                .explain(IntentLayer::NAME, || format!("refused: {error}"));
            return Err(error);
        }
        guard.cx.explain(IntentLayer::NAME, || {
            "recorded the call before it is sent".to_owned()
        });
        let result = self.inner.invoke(guard.cx).await;
        guard.finish(result)
    }
}

/// A recorded call. Settles the record, also when the call's future is dropped.
struct IntentGuard<'a> {
    ledger: &'a dyn Ledger,
    id: CorrelationId,
    cx: &'a mut CallContext,
    is_finished: bool,
}

impl IntentGuard<'_> {
    fn finish(mut self, result: Result<Outcome, ToolError>) -> Result<Outcome, ToolError> {
        self.is_finished = true;
        let end = match &result {
            Ok(Outcome::Reply(_) | Outcome::Task(_)) => CallEnd::Answered(None),
            Ok(_) => CallEnd::Open,
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => CallEnd::Unknown(error.clone()),
            Err(_) if !self.cx.may_have_run() => CallEnd::Free,
            Err(error) => CallEnd::Failed(error.clone()),
        };
        self.ledger.settle_intent(self.id, end);
        result
    }
}

impl Drop for IntentGuard<'_> {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        let end = if self.cx.may_have_run() {
            let message = "the call was cancelled before it was answered; whether the tool ran is not known";
            let error = ToolError::new(ErrorKind::OutcomeUnknown, message);
            CallEnd::Unknown(error.with_ledger_id(self.id))
        } else {
            CallEnd::Free
        };
        self.ledger.settle_intent(self.id, end);
    }
}

impl fmt::Debug for IntentLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntentLayer").finish_non_exhaustive()
    }
}

impl<S: fmt::Debug> fmt::Debug for Intent<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intent")
            .field("settings", &self.settings)
            .field("inner", &self.inner)
            .finish()
    }
}
