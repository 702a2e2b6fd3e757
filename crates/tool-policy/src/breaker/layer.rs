use std::sync::Arc;

use super::{
    BreakerScope,
    permits::{enabled, upstream_settings},
};
use tool_core::{
    CallContext, DispatchState, HealthSignal, HealthSignals, Invoke, Jitter, Layer, NamedLayer, Outcome,
    ToolError,
};

use super::{
    circuit::CircuitOutcome,
    permits::{Outcomes, Permits},
};

/// Blocks a tool after failures, and all tools of an upstream to which no connection can be made. [`Circuit`](crate::Circuit)
/// describes the states (Nygard, "Release It!").
///
/// Does nothing for a tool until its `Settings` contain [`Breakers`](crate::Breakers). All calls must use the same clock.
///
/// # What counts
/// The [`HealthSignal`] of each attempt. For the tool, every kind of failure counts for which
/// [`ErrorKind::counts_for_breaker`](tool_core::ErrorKind::counts_for_breaker) is `true`. For its upstream, only a connection
/// that could not be made counts: nothing was sent. With [`BreakerScope::Upstream`], every failure counts in which the upstream
/// did not answer as it should; even then one broken tool of a server does not block the others. A refusal by the upstream
/// counts for neither. A cancelled call counts only if it had run for about as long as its limits allow.
///
/// # Order
/// Right before dispatch, so that a probe is not lost in a queue. [`BreakerPeekLayer`](crate::BreakerPeekLayer) stands before
/// the queues.
///
/// # Examples
/// ```
/// use tool_core::{Arguments, CallContext, ErrorKind, Invoke, Layer, TargetBackend, Tool, ToolError};
/// use tool_core::{invoke_fn, serde_json::Value};
/// use tool_policy::{BreakerLayer, BreakerSettings, Breakers};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let down = Tool::builder("down")
///     .setting(Breakers::from(BreakerSettings::default().with_max_failures(1)))
///     .run(invoke_fn(|_| async { Err::<Value, _>(ToolError::new(ErrorKind::Unavailable, "out of order")) }));
/// let stack = BreakerLayer::default().layer(TargetBackend);
/// let call = || CallContext::local(&down, Arguments::none());
/// assert_eq!(stack.invoke(&mut call()).await.unwrap_err().message(), "out of order");
/// let blocked = stack.invoke(&mut call()).await.unwrap_err();
/// assert!(blocked.message().contains("is blocked by its circuit breaker"));
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct BreakerLayer {
    jitter: Arc<Jitter>,
}

/// Service of [`BreakerLayer`].
#[derive(Debug, Clone)]
pub struct Breaker<S> {
    jitter: Arc<Jitter>,
    inner: S,
}

impl BreakerLayer {
    /// Creates a layer whose pauses have this jitter, such as a seeded one for reproducible tests.
    #[must_use]
    pub fn with_jitter(jitter: Jitter) -> Self {
        Self {
            jitter: Arc::new(jitter),
        }
    }
}

impl NamedLayer for BreakerLayer {
    const NAME: &'static str = "breaker";
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

impl<S: Invoke> Invoke for Breaker<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let permits = match enabled(cx.tool()) {
            Some(settings) => Some(Permits::acquire(cx, settings)?),
            None => None,
        };
        let guard = AttemptGuard {
            cx,
            permits,
            jitter: &self.jitter,
        };
        let result = self.inner.invoke(guard.cx).await;
        guard.end(&result);
        result
    }
}

/// A running attempt. Reports its outcome to its circuits, also when its future is dropped.
struct AttemptGuard<'a> {
    cx: &'a mut CallContext,
    permits: Option<Permits>,
    jitter: &'a Jitter,
}

impl AttemptGuard<'_> {
    fn end(mut self, result: &Result<Outcome, ToolError>) {
        self.report(Some(result));
    }

    fn report(&mut self, result: Option<&Result<Outcome, ToolError>>) {
        if let Some(permits) = self.permits.take() {
            let now = self.cx.clock.now();
            let signals = HealthSignals::from_result(self.cx, result, now.since(permits.start));
            let dispatch = self.cx.dispatch().state();
            let was_answered = dispatch == DispatchState::Answered;
            let outcomes = Outcomes {
                tool: circuit_outcome(signals.tool, was_answered),
                upstream: match upstream_settings(self.cx.tool()).per {
                    BreakerScope::Upstream => circuit_outcome(signals.upstream, was_answered),
                    BreakerScope::Tool => connection_outcome(signals.upstream, dispatch),
                },
            };
            let kind = result
                .and_then(|result| result.as_ref().err())
                .map(ToolError::kind);
            permits.report(self.cx, outcomes, (now, kind), self.jitter);
        }
    }
}

impl Drop for AttemptGuard<'_> {
    fn drop(&mut self) {
        self.report(None);
    }
}

/// Converts a health signal for a circuit. The backend is known to be reachable only if it answered.
fn circuit_outcome(signal: HealthSignal, was_answered: bool) -> CircuitOutcome {
    match signal {
        HealthSignal::Answered | HealthSignal::Reported => CircuitOutcome::Success,
        HealthSignal::Failure => CircuitOutcome::Failure,
        HealthSignal::AuthFailure | HealthSignal::ToolFailure | HealthSignal::Neutral if was_answered => {
            CircuitOutcome::Reachable
        }
        HealthSignal::AuthFailure
        | HealthSignal::ToolFailure
        | HealthSignal::Neutral
        | HealthSignal::NotObserved => CircuitOutcome::Unknown,
    }
}

/// Converts a health signal for the circuit of an upstream that counts only connections.
fn connection_outcome(signal: HealthSignal, dispatch: DispatchState) -> CircuitOutcome {
    match (signal, dispatch) {
        (HealthSignal::Answered | HealthSignal::Reported, _) => CircuitOutcome::Success,
        (HealthSignal::Failure, DispatchState::NotSent) => CircuitOutcome::Failure,
        (_, DispatchState::NotSent) => CircuitOutcome::Unknown,
        _ => CircuitOutcome::Reachable,
    }
}
