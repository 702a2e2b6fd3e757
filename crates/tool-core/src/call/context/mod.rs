//! The context of a call: its parts, and what layers may ask of it.

mod attempt_history;
mod attempts;
mod correlation_id;
mod extras;
mod origin;
mod target;

use std::{fmt, sync::Arc, time::Duration};

use sha2::{Digest, Sha256};

use self::{attempt_history::AttemptHistory, attempts::is_repeatable};
pub use self::{correlation_id::CorrelationId, extras::RequestExtras, origin::CallOrigin, target::Target};
use crate::{
    Arguments, Asker, CallChain, Caller, ClientIdentity, Clock, DispatchHistory, DispatchState, Event,
    FallbackOf, Instant, Observers, Overrides, Setting, SystemClock, Tool, TraceContext,
};

/// The context of one call. Layers pass it down by `&mut`; none of them owns it.
///
/// Its parts are the [`CallOrigin`] (who calls), the [`RequestExtras`] (what the request carries besides its arguments)
/// and the history of its attempts, which decides what may still be done: see [`CallContext::may_have_run`].
///
/// # Cancellation
/// Dropping the future of a call cancels it. [`CallContext::dispatch`] outlives the future, so whoever dropped it can
/// still tell whether the tool may have run.
#[non_exhaustive]
pub struct CallContext {
    /// Mode of the call: live, or a dry run.
    pub mode: Mode,
    /// Target of the call: a tool, prompt, resource, completion or task.
    pub target: Target,
    /// Arguments of the call.
    pub arguments: Arc<Arguments>,
    /// Facts about the caller and its client.
    pub origin: CallOrigin,
    /// Members of the request besides its arguments.
    pub extras: RequestExtras,
    /// Id that all records of this call share.
    pub correlation_id: CorrelationId,
    /// Trace context for outgoing requests: the caller's, until a span of ours replaces it.
    pub trace: Option<TraceContext>,
    /// Deadline of the whole call, including queueing, retries and fallbacks.
    pub deadline: Option<Instant>,
    /// Number of the current attempt, starting at 1; 0 before the first.
    pub attempt: u32,
    /// `true` for a hedged attempt, which runs in parallel with a slow one. It never waits for a permit.
    pub is_hedge: bool,
    /// Tools that failed before the current one was called as their fallback; `None` for a call of its own.
    pub fallback_of: Option<FallbackOf>,
    /// Workflows whose steps led to the call; `None` for a call of its own.
    pub called_from: Option<Arc<CallChain>>,
    /// Settings of this call alone, in place of its tool's: see [`CallContext::setting`].
    pub overrides: Option<Arc<Overrides>>,
    /// Observers that receive the events of this call.
    pub observers: Observers,
    /// Clock of the call.
    pub clock: Arc<dyn Clock>,
    attempts: AttemptHistory,
    decisions: Option<Vec<LayerDecision>>,
}

/// Selects whether layers act on a call or only decide about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Layers act and the tool runs.
    #[default]
    Live,
    /// Layers decide and explain as in a live call, but count, store and send nothing and ask nobody.
    DryRun,
}

/// A decision of a layer about a call, recorded if the call is to be explained.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayerDecision {
    /// Name of the layer.
    pub layer: &'static str,
    /// The decision and its reason.
    pub decision: String,
    /// Time of the decision, by the clock of the call.
    pub at: Instant,
}

impl LayerDecision {
    /// Creates a decision of a layer at this time.
    #[must_use]
    pub fn new(layer: &'static str, decision: impl Into<String>, at: Instant) -> Self {
        Self {
            layer,
            decision: decision.into(),
            at,
        }
    }
}

impl CallContext {
    /// Creates the context of a live call without extras.
    #[must_use]
    pub fn new(
        target: Target,
        arguments: Arc<Arguments>,
        caller: Arc<Caller>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            mode: Mode::Live,
            target,
            arguments,
            origin: CallOrigin::new(caller),
            extras: RequestExtras::default(),
            correlation_id: CorrelationId(0),
            trace: None,
            deadline: None,
            attempt: 0,
            is_hedge: false,
            fallback_of: None,
            called_from: None,
            overrides: None,
            observers: Observers::default(),
            clock,
            attempts: AttemptHistory::default(),
            decisions: None,
        }
    }

    /// Creates the context of a live call of this tool by the local caller, by the system's clock.
    ///
    /// # Examples
    /// See [`invoke_fn`](crate::invoke_fn).
    #[must_use]
    pub fn local(tool: &Arc<Tool>, arguments: Arguments) -> Self {
        Self::new(
            Target::Tool(tool.clone()),
            Arc::new(arguments),
            Arc::new(Caller::local()),
            Arc::new(SystemClock::new()),
        )
    }

    /// Returns the called tool, or the tool that represents a prompt or resource: see [`Target::tool`].
    #[must_use]
    pub fn tool(&self) -> &Arc<Tool> {
        self.target.tool()
    }

    /// Returns `true` if nothing may be sent, counted or kept for the call: see [`Mode::DryRun`].
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.mode == Mode::DryRun
    }

    /// Returns the identity of the calling client.
    #[must_use]
    pub fn client_identity(&self) -> ClientIdentity {
        self.origin.client_identity()
    }

    /// Returns the id of the call's entry in the [`Ledger`](crate::Ledger).
    #[must_use]
    pub fn ledger_id(&self) -> CorrelationId {
        self.extras.ledger_entry_id.unwrap_or(self.correlation_id)
    }

    /// Returns the idempotency key that the backend receives: a UUID (version 8, RFC 9562), or `None` if the call has no
    /// key. It is a digest of tenant, principal, tool and the caller's key, since principals may use equal keys and
    /// all of them are one client to the backend.
    #[must_use]
    pub fn upstream_idempotency_key(&self) -> Option<String> {
        let key = self.extras.idempotency_key.as_deref()?;
        let mut digest = Sha256::new();
        for part in [
            &*self.origin.caller.tenant,
            &*self.origin.caller.principal,
            &**self.tool().name(),
            key,
        ] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        let digest = digest.finalize();
        let mut bytes: [u8; 16] = std::array::from_fn(|index| digest[index]);
        // RFC 9562, version 8: the content is defined by the application.
        bytes[6] = bytes[6] & 0x0f | 0x80;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let text = format!("{:032x}", u128::from_be_bytes(bytes));
        let (a, b, c, d, e) = (
            &text[..8],
            &text[8..12],
            &text[12..16],
            &text[16..20],
            &text[20..],
        );
        Some(format!("{a}-{b}-{c}-{d}-{e}"))
    }

    /// Returns the time left until the deadline, or `None` if there is no deadline. Time that the client takes to answer
    /// questions does not count.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        let waited = self.waited();
        self.deadline
            .map(|deadline| (deadline + waited).since(self.clock.now()))
    }

    /// Returns `true` if the deadline of the call has passed.
    #[must_use]
    pub fn has_expired(&self) -> bool {
        self.remaining().is_some_and(|left| left.is_zero())
    }

    /// Returns the key by which a call continues when it is made again: SHA-256 of the caller, the tool and the `version` of its
    /// definition, the idempotency key and the arguments.
    #[must_use]
    pub fn continuation_key(&self, version: &str) -> [u8; 32] {
        let mut key = Sha256::new();
        for part in [
            &*self.origin.caller.tenant,
            &*self.origin.caller.principal,
            &**self.tool().name(),
            version,
            self.extras.idempotency_key.as_deref().unwrap_or_default(),
        ] {
            key.update((part.len() as u64).to_be_bytes());
            key.update(part);
        }
        key.update(self.arguments.digest());
        key.finalize().into()
    }

    /// Returns `true` if an abandoned attempt counts as a failure of its tool: it was sent and ran for at least nine
    /// tenths of the configured limit. An impatient caller says nothing about the tool; a tool that hangs longer than
    /// its callers wait would otherwise never be seen to fail.
    #[must_use]
    pub fn ran_until_timeout(&self, elapsed: Duration) -> bool {
        let settings = self.tool().settings();
        let limit = settings.attempt_timeout.min(settings.call_timeout);
        let was_sent = self.dispatch().state() == DispatchState::Sent;
        elapsed >= limit - limit / 10 && was_sent && !self.origin.ask.as_ref().is_some_and(Asker::has_asked)
    }

    /// Returns the time that the client took to answer questions.
    fn waited(&self) -> Duration {
        self.origin.ask.as_ref().map_or(Duration::ZERO, Asker::waited)
    }

    /// Moves the deadline to `limit` from now unless it is earlier already, and returns the time left until then.
    pub fn tighten_deadline(&mut self, limit: Duration) -> Duration {
        let waited = self.waited();
        // On a time line that stands still while the client answers questions.
        let now = Instant::since_start(self.clock.now().since(Instant::since_start(waited)));
        let latest = now + limit;
        let deadline = self.deadline.map_or(latest, |deadline| deadline.min(latest));
        self.deadline = Some(deadline);
        deadline.since(now)
    }

    /// Records the decisions of layers from now on.
    pub fn record_decisions(&mut self) {
        self.decisions.get_or_insert_default();
    }

    /// Records a decision of a layer for `--explain`. Calls `decision` only if the call is to be explained.
    pub fn explain(&mut self, layer: &'static str, decision: impl FnOnce() -> String) {
        if let Some(decisions) = &mut self.decisions {
            decisions.push(LayerDecision {
                layer,
                decision: decision(),
                at: self.clock.now(),
            });
        }
    }

    /// Emits [`Event::Refused`] for a layer that refuses the call. `reason` is one of a few fixed words.
    pub fn emit_refused(&self, layer: &'static str, reason: &'static str) {
        let cx = self;
        self.observers.emit(&Event::Refused { cx, layer, reason });
    }

    /// Returns the decisions of layers that were recorded so far.
    #[must_use]
    pub fn decisions(&self) -> &[LayerDecision] {
        self.decisions.as_deref().unwrap_or_default()
    }

    /// Returns a copy for work in a task of its own: the same call, with decisions and a dispatch mark of its own. The
    /// mark counts as one of the call's.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            mode: self.mode,
            target: self.target.clone(),
            arguments: self.arguments.clone(),
            origin: self.origin.clone(),
            extras: self.extras.clone(),
            correlation_id: self.correlation_id,
            trace: self.trace.clone(),
            deadline: self.deadline,
            attempt: self.attempt,
            is_hedge: self.is_hedge,
            fallback_of: self.fallback_of.clone(),
            called_from: self.called_from.clone(),
            overrides: self.overrides.clone(),
            observers: self.observers.clone(),
            clock: self.clock.clone(),
            attempts: self.attempts.fork(),
            decisions: self.decisions.as_ref().map(|_| Vec::new()),
        }
    }

    /// Returns a copy for work that serves several calls. Its attempts count in `history`, not in this call's.
    #[must_use]
    pub fn fork_detached(&self, history: Arc<DispatchHistory>) -> Self {
        Self {
            attempt: 0,
            attempts: AttemptHistory::within(history),
            ..self.fork()
        }
    }

    /// Returns the context for calling `tool` as a fallback: the same arguments, caller, deadline and correlation id,
    /// without the idempotency key, round and task of the present call.
    #[must_use]
    pub fn fork_fallback(&self, tool: Arc<Tool>, fallback_of: FallbackOf) -> Self {
        Self {
            target: Target::Tool(tool),
            extras: self.extras.for_fallback(),
            fallback_of: Some(fallback_of),
            overrides: None,
            ..self.fork_detached(Arc::default())
        }
    }

    /// Returns the context for calling `tool` as a step of the present call, which is that of a workflow: with other arguments and
    /// an id of its own, for the same caller under the same deadline. Progress of a step is not the workflow's, so it has no
    /// receiver. Attempts of the step count as the workflow's, unless the tool may run twice or the step is `repeatable`.
    #[must_use]
    pub fn fork_step(
        &self,
        tool: Arc<Tool>,
        arguments: Arc<Arguments>,
        id: CorrelationId,
        called_from: Arc<CallChain>,
        repeatable: bool,
    ) -> Self {
        let mut origin = self.origin.clone();
        origin.progress = None;
        let target = Target::Tool(tool);
        let history = if repeatable || is_repeatable(&target) {
            DispatchHistory::default()
        } else {
            DispatchHistory::within(self.history().clone())
        };
        Self {
            target,
            arguments,
            origin,
            extras: RequestExtras::default(),
            correlation_id: id,
            fallback_of: None,
            called_from: Some(called_from),
            overrides: None,
            ..self.fork_detached(Arc::new(history))
        }
    }

    /// Returns a setting of the call: its own, or else that of its tool.
    #[must_use]
    pub fn setting<T: Setting>(&self) -> Option<&T> {
        let own = self.overrides.as_deref().and_then(Overrides::get);
        own.or_else(|| self.tool().settings().get())
    }
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext")
            .field("target", &self.target)
            .field("caller", &self.origin.caller)
            .field("correlation_id", &self.correlation_id)
            .field("deadline", &self.deadline)
            .field("attempt", &self.attempt)
            .field("dispatch", self.dispatch())
            .finish_non_exhaustive()
    }
}
