use std::sync::Arc;

use super::{BreakerScope, BreakerSettings, Breakers};
use tool_core::{
    BreakerChange, CallContext, DispatchState, ErrorKind, Event, HealthSignal, HealthSignals, Instant,
    Invoke, Jitter, Layer, Outcome, Scope, ToolError, format_duration,
};

use super::circuit::{Circuit, HeldBack, Permit, Verdict};

/// Holds a tool back after failures, where its [`BreakerSettings`] say so, and all tools of an upstream that cannot be
/// connected to. The states are those of [`Circuit`]. The circuit of an upstream goes by
/// [`Settings::upstream_breaker`](tool_core::Settings).
///
/// # What counts
/// What its [`HealthSignal`] says. For the tool that is every kind of failure that [`ErrorKind::counts_for_breaker`] names. For its
/// upstream it is a connection that could not be made: nothing was sent. Where the operator asks for it
/// ([`BreakerScope::Upstream`]), it is also every failure in which the upstream did not answer as it should; one broken
/// tool of a server does not take the others with it even then. A refusal by the upstream counts for neither, and a withdrawn call only if it had been under way for about as long as its
/// limits let it.
///
/// # Order
/// Right before dispatch, so that a probe is not lost in a queue; [`BreakerPeekLayer`] stands before the queues.
#[derive(Debug, Clone, Default)]
pub struct BreakerLayer {
    jitter: Arc<Jitter>,
}

/// The layer of [`BreakerLayer`].
#[derive(Debug, Clone)]
pub struct Breaker<S> {
    jitter: Arc<Jitter>,
    inner: S,
}

/// Refuses at once what [`BreakerLayer`] would refuse after the queues. It takes no leave and counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct BreakerPeekLayer;

/// The layer of [`BreakerPeekLayer`].
#[derive(Debug, Clone)]
pub struct BreakerPeek<S> {
    inner: S,
}

impl BreakerLayer {
    /// A layer whose pauses are a sequence that can be repeated.
    #[must_use]
    pub fn with_jitter(jitter: Jitter) -> Self {
        Self {
            jitter: Arc::new(jitter),
        }
    }
}

impl<S> Layer<S> for BreakerLayer {
    type Invoke = Breaker<S>;

    fn layer(self, inner: S) -> Breaker<S> {
        Breaker {
            jitter: self.jitter,
            inner,
        }
    }
}

impl<S> Layer<S> for BreakerPeekLayer {
    type Invoke = BreakerPeek<S>;

    fn layer(self, inner: S) -> BreakerPeek<S> {
        BreakerPeek { inner }
    }
}

impl<S: Invoke> Invoke for BreakerPeek<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        if cx.tool().settings().get::<Breakers>().is_some() {
            let circuits = Circuits::of(cx);
            let now = cx.clock.now();
            circuits
                .tool
                .peek(now)
                .map_err(|held| refuse(cx, held, Scope::Tool))?;
            if let Some(upstream) = &circuits.upstream {
                upstream
                    .peek(now)
                    .map_err(|held| refuse(cx, held, Scope::Upstream))?;
            }
        }
        self.inner.invoke(cx).await
    }
}

impl<S: Invoke> Invoke for Breaker<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let held = match cx.tool().settings().get::<Breakers>().copied() {
            Some(settings) => Some(Held::acquire(cx, settings)?),
            None => None,
        };
        let attempt = Attempt {
            cx,
            held,
            jitter: &self.jitter,
        };
        let result = self.inner.invoke(attempt.cx).await;
        attempt.end(&result);
        result
    }
}

/// The settings of the upstream's circuit.
fn of_upstream(cx: &CallContext) -> BreakerSettings {
    let settings = cx.tool().settings().get::<Breakers>();
    settings.map_or_else(BreakerSettings::default, |settings| settings.upstream)
}

/// The circuits that a call goes through.
struct Circuits {
    tool: Arc<Circuit>,
    upstream: Option<Arc<Circuit>>,
}

impl Circuits {
    fn of(cx: &CallContext) -> Self {
        let state = cx.tool().state();
        Self {
            tool: state.get_or_init(Circuit::default),
            upstream: state
                .upstream()
                .filter(|_| !of_upstream(cx).disabled)
                .map(|upstream| upstream.get_or_init(Circuit::default)),
        }
    }
}

/// Leave of both circuits for one attempt.
struct Held {
    start: Instant,
    tool: Leave,
    upstream: Option<Leave>,
}

/// Leave of one circuit, which goes by these settings.
struct Leave {
    circuit: Arc<Circuit>,
    permit: Permit,
    settings: BreakerSettings,
}

impl Held {
    fn acquire(cx: &mut CallContext, settings: Breakers) -> Result<Self, ToolError> {
        let circuits = Circuits::of(cx);
        let start = cx.clock.now();
        let permit = circuits
            .tool
            .acquire(start)
            .map_err(|held| refuse(cx, held, Scope::Tool))?;
        tell(cx, Scope::Tool, permit.changed().cloned(), None);
        let mut held = Self {
            start,
            tool: Leave {
                circuit: circuits.tool,
                permit,
                settings: settings.tool,
            },
            upstream: None,
        };
        if let Some(circuit) = circuits.upstream {
            match circuit.acquire(start) {
                Ok(permit) => {
                    tell(cx, Scope::Upstream, permit.changed().cloned(), None);
                    held.upstream = Some(Leave {
                        circuit,
                        permit,
                        settings: settings.upstream,
                    });
                }
                Err(back) => {
                    // No pause begins here, so there is nothing that chance could be needed for.
                    held.give_back(
                        cx,
                        (Verdict::Unknown, Verdict::Unknown),
                        (start, None),
                        &Jitter::seeded(0),
                    );
                    return Err(refuse(cx, back, Scope::Upstream));
                }
            }
        }
        cx.explain("breaker", || "nothing holds it back".to_owned());
        Ok(held)
    }

    /// `end` is when the attempt ended, and with which failure.
    fn give_back(
        self,
        cx: &CallContext,
        verdicts: (Verdict, Verdict),
        end: (Instant, Option<ErrorKind>),
        jitter: &Jitter,
    ) {
        let (now, kind) = end;
        tell(cx, Scope::Tool, self.tool.report(verdicts.0, now, jitter), kind);
        if let Some(upstream) = self.upstream {
            tell(
                cx,
                Scope::Upstream,
                upstream.report(verdicts.1, now, jitter),
                kind,
            );
        }
    }
}

impl Leave {
    fn report(self, verdict: Verdict, now: Instant, jitter: &Jitter) -> Option<BreakerChange> {
        self.circuit
            .report(self.permit, verdict, now, &self.settings, jitter)
    }
}

/// An attempt under way, which gives back what it holds, also when its future is dropped.
struct Attempt<'a> {
    cx: &'a mut CallContext,
    held: Option<Held>,
    jitter: &'a Jitter,
}

impl Attempt<'_> {
    fn end(mut self, result: &Result<Outcome, ToolError>) {
        self.give_back(Some(result));
    }

    fn give_back(&mut self, result: Option<&Result<Outcome, ToolError>>) {
        if let Some(held) = self.held.take() {
            let now = self.cx.clock.now();
            let signs = HealthSignals::of(self.cx, result, now.since(held.start));
            let reached = self.cx.dispatch().state();
            let was_answered = reached == DispatchState::Answered;
            let of_upstream = match of_upstream(self.cx).per {
                BreakerScope::Upstream => verdict(signs.upstream, was_answered),
                BreakerScope::Tool => connected(signs.upstream, reached),
            };
            let verdicts = (verdict(signs.tool, was_answered), of_upstream);
            let kind = result
                .and_then(|result| result.as_ref().err())
                .map(ToolError::kind);
            held.give_back(self.cx, verdicts, (now, kind), self.jitter);
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.give_back(None);
    }
}

/// What a sign is to a circuit. That something is there is known only if it answered.
fn verdict(sign: HealthSignal, was_answered: bool) -> Verdict {
    match sign {
        HealthSignal::Answered | HealthSignal::Reported => Verdict::Healthy,
        HealthSignal::Failure => Verdict::Ill,
        HealthSignal::AuthFailure | HealthSignal::ToolFailure | HealthSignal::Neutral if was_answered => {
            Verdict::Alive
        }
        HealthSignal::AuthFailure
        | HealthSignal::ToolFailure
        | HealthSignal::Neutral
        | HealthSignal::NotObserved => Verdict::Unknown,
    }
}

/// What an attempt says of the way to its upstream, and of nothing else.
fn connected(sign: HealthSignal, reached: DispatchState) -> Verdict {
    match (sign, reached) {
        (HealthSignal::Answered | HealthSignal::Reported, _) => Verdict::Healthy,
        (HealthSignal::Failure, DispatchState::NotSent) => Verdict::Ill,
        (_, DispatchState::NotSent) => Verdict::Unknown,
        _ => Verdict::Alive,
    }
}

/// Tells how a circuit's state has changed, if it has, and by which failure.
fn tell(cx: &CallContext, scope: Scope, change: Option<BreakerChange>, kind: Option<ErrorKind>) {
    let Some(mut change) = change else { return };
    if let Some(kind) = kind {
        change.reason.push_str(&format!(", the last as `{kind}`"));
    }
    let change = &change;
    cx.observers.tell(&Event::BreakerChanged { cx, scope, change });
}

fn refuse(cx: &mut CallContext, held: HeldBack, scope: Scope) -> ToolError {
    cx.observers.tell(&Event::HeldBack { cx, scope });
    let what = match scope {
        Scope::Upstream => "what runs ",
        _ => "",
    };
    let until = match held.retry_after {
        Some(wait) => format!("for another {}", format_duration(wait)),
        None => "until a call that tries it out is answered".to_owned(),
    };
    let message = format!(
        "{what}`{}` is held back {until}, after failures",
        cx.target.name()
    );
    cx.explain("breaker", || message.clone());
    let error = ToolError::new(ErrorKind::Unavailable, message).with_no_retry();
    match held.retry_after {
        Some(wait) => error.with_retry_after(wait),
        None => error,
    }
}
