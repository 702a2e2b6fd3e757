use crate::IdempotencySettings;
use std::{fmt, sync::Arc, time::Duration};

use raw_json::RawJson;
use tool_core::{
    CallContext, Claim, Claimed, ErrorKind, Event, Invoke, Layer, Ledger, LedgerEntry, LedgerState, Outcome,
    Settled, Target, ToolError,
};

/// Makes a caller's idempotency key have its effect once, and remembers the calls of which nobody knows whether they
/// had one. What is remembered is in a [`Ledger`].
///
/// # What a call with a key comes to
/// If it is the first with its key, it is made. A call with the same key, tool and arguments that comes while that one
/// runs waits for it, within its own deadline; one that comes later gets the stored answer, marked with
/// [`IdempotencyLayer::META_KEY`]. The same key for another tool or with other arguments is refused. Keys belong to
/// principals: two of them may use the same one.
///
/// A failure frees the key if the tool cannot have run, or may run again; otherwise the same failure is told again. If
/// nobody knows whether the tool ran, every call with the key is told so again, under the same id, and makes nothing run,
/// unless the tool may be called again: see [`CallContext::may_be_repeated`].
///
/// A call that needs input or a decision first holds the key until it goes on; another round counts nothing twice.
///
/// # Calls without a key
/// They are remembered only if nobody knows whether the tool ran, and pay for nothing else. What comes of a tool that
/// stands in for another is remembered with that one's call.
///
/// # Cancellation
/// A call whose future is dropped frees the key, unless it was sent off: then nobody knows whether the tool ran.
#[derive(Clone)]
pub struct IdempotencyLayer {
    ledger: Arc<dyn Ledger>,
}

/// The layer of [`IdempotencyLayer`].
#[derive(Clone)]
pub struct Idempotency<S> {
    settings: IdempotencyLayer,
    inner: S,
}

impl IdempotencyLayer {
    /// Where an answer that was stored says so: the id of its entry.
    pub const META_KEY: &'static str = "dev.toolplane/replayed";

    /// A layer that remembers calls in this ledger.
    #[must_use]
    pub fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger }
    }
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
        // What is no tool is read or asked, as often as one likes.
        if cx.is_dry_run() || !matches!(cx.target, Target::Tool(_)) {
            check(cx)?;
            return self.inner.invoke(cx).await;
        }
        // What came of a stand-in is remembered with the call that it is made for, under whose id it runs.
        if cx.fallback_of.is_some() {
            return self.inner.invoke(cx).await;
        }
        if cx.extras.idempotency_key.is_some() {
            check(cx)?;
            if let Some(entry) = claim(&**ledger, cx).await? {
                cx.observers.tell(&Event::Replayed { cx });
                return replay(cx, *entry);
            }
        }
        let call = Call {
            is_granted: cx.extras.ledger_entry_id.is_some(),
            cx,
            ledger: &**ledger,
            is_over: false,
        };
        let result = self.inner.invoke(call.cx).await;
        call.end(result)
    }
}

fn check(cx: &CallContext) -> Result<(), ToolError> {
    match cx.extras.idempotency_key.as_deref().map(Claim::check_key) {
        Some(Err(problem)) => {
            cx.emit_refused("idempotency", "key");
            let message = format!("the idempotency key {problem}");
            Err(ToolError::new(ErrorKind::InvalidArguments, message))
        }
        _ => Ok(()),
    }
}

/// Takes the call's key for it, or gives what came of the call with that key.
async fn claim(ledger: &dyn Ledger, cx: &mut CallContext) -> Result<Option<Box<LedgerEntry>>, ToolError> {
    let claim = Claim::of(cx, ttl(cx));
    loop {
        match ledger.claim(&claim).await? {
            Claimed::Granted(id) => {
                cx.extras.ledger_entry_id = Some(id);
                cx.explain("idempotency", || "the key is this call's".to_owned());
                return Ok(None);
            }
            Claimed::Running(end) => {
                cx.explain("idempotency", || "waits for a call with the same key".to_owned());
                end.await;
            }
            Claimed::Settled(entry) => return Ok(Some(entry)),
            Claimed::Conflict => {
                cx.explain("idempotency", || "refused: the key is another call's".to_owned());
                cx.emit_refused("idempotency", "conflict");
                let message = "the idempotency key was used for a call of another tool or with other \
                               arguments; take a new one";
                return Err(ToolError::new(ErrorKind::InvalidArguments, message));
            }
        }
    }
}

/// What came of the call with the same key.
fn replay(cx: &mut CallContext, entry: LedgerEntry) -> Result<Outcome, ToolError> {
    let id = entry.id;
    cx.extras.ledger_entry_id = Some(id);
    cx.explain("idempotency", || {
        format!(
            "as of the call {id} with the same key, which is {}",
            entry.state.as_str()
        )
    });
    match entry.state {
        LedgerState::Answered(Some(mut reply)) => {
            reply.add_meta(IdempotencyLayer::META_KEY, RawJson::from(id.to_string().as_str()));
            Ok(reply.into())
        }
        LedgerState::Failed(error) | LedgerState::Unknown(error) => Err(error),
        LedgerState::Answered(None) => Err(lost(
            id,
            "a call with this idempotency key has run already, and its answer is not kept",
        )),
        // A ledger tells of nothing else as settled.
        _ => Err(lost(
            id,
            "what came of the call with this idempotency key is not known",
        )),
    }
}

fn lost(id: tool_core::CorrelationId, message: &str) -> ToolError {
    ToolError::new(ErrorKind::OutcomeUnknown, message).with_ledger_id(id)
}

/// A call under way, of which is remembered what came of it, also when its future is dropped.
struct Call<'a> {
    cx: &'a mut CallContext,
    ledger: &'a dyn Ledger,
    is_granted: bool,
    is_over: bool,
}

impl Call<'_> {
    fn end(mut self, result: Result<Outcome, ToolError>) -> Result<Outcome, ToolError> {
        self.is_over = true;
        let result = result.map_err(|error| match error.kind() {
            ErrorKind::OutcomeUnknown => error.with_ledger_id(self.cx.ledger_id()),
            _ => error,
        });
        let is_unknown = |error: &ToolError| error.kind() == ErrorKind::OutcomeUnknown;
        if self.is_granted || result.as_ref().is_err_and(is_unknown) {
            self.settle(ended(self.cx, &result));
        }
        result
    }

    fn settle(&self, end: Settled) {
        match end {
            // Another tool may have run in the place of this one, and must not again, whatever this one may.
            Settled::Unknown(error) if self.is_granted && self.cx.side_effect_by_fallback() => {
                self.ledger.settle(self.cx.ledger_id(), Settled::Failed(error));
            }
            end if self.is_granted => self.ledger.settle(self.cx.ledger_id(), end),
            Settled::Unknown(error) => self.ledger.record(Claim::of(self.cx, ttl(self.cx)), error),
            _ => {}
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.settle(withdrawn(self.cx));
        }
    }
}

/// What a call came to that has ended so.
fn ended(cx: &CallContext, result: &Result<Outcome, ToolError>) -> Settled {
    match result {
        Ok(Outcome::Reply(reply)) => Settled::Answered(Some(reply.clone())),
        Ok(Outcome::Task(_)) => Settled::Answered(None),
        Ok(_) => Settled::Open,
        Err(error) if error.kind() == ErrorKind::OutcomeUnknown => Settled::Unknown(error.clone()),
        Err(_) if !cx.may_have_run() || cx.may_be_repeated() => Settled::Free,
        Err(error) => Settled::Failed(error.clone()),
    }
}

/// What a call came to that nobody waited for any longer. An answer that nobody took note of is none.
fn withdrawn(cx: &CallContext) -> Settled {
    if !cx.may_have_run() {
        return Settled::Free;
    }
    let message = "the call was withdrawn before it was answered; whether the tool ran is not known";
    Settled::Unknown(lost(cx.ledger_id(), message))
}

impl fmt::Debug for IdempotencyLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotency").finish_non_exhaustive()
    }
}

impl<S: fmt::Debug> fmt::Debug for Idempotency<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotent")
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
