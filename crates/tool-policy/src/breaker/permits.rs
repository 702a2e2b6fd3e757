//! Permits of one attempt: from the circuit of its tool and from that of the tool's upstream.

use std::sync::Arc;

use tool_core::{
    BreakerChange, CallContext, ErrorKind, Event, Instant, Jitter, NamedLayer, Scope, Tool, ToolError,
    format_duration,
};

use super::{
    BreakerLayer, BreakerSettings, Breakers,
    circuit::{Circuit, CircuitOpen, CircuitOutcome, CircuitPermit},
};

/// The circuits that a call passes.
pub(super) struct Circuits {
    pub(super) tool: Arc<Circuit>,
    pub(super) upstream: Option<Arc<Circuit>>,
}

/// Returns the settings of the tool's breakers, unless it has none or they are disabled.
pub(super) fn enabled(tool: &Tool) -> Option<Breakers> {
    let settings = tool.settings().get::<Breakers>().copied();
    settings.filter(|settings| !settings.tool.disabled)
}

/// Returns the settings of the upstream's circuit.
pub(super) fn upstream_settings(tool: &Tool) -> BreakerSettings {
    let settings = tool.settings().get::<Breakers>();
    settings.map_or_else(BreakerSettings::default, |settings| settings.upstream)
}

/// Permits of all circuits for one attempt.
pub(super) struct Permits {
    pub(super) start: Instant,
    tool: HeldPermit,
    upstream: Option<HeldPermit>,
}

/// A permit with its circuit and the settings of that circuit.
struct HeldPermit {
    circuit: Arc<Circuit>,
    permit: CircuitPermit,
    settings: BreakerSettings,
}

/// Outcome of an attempt for each of its circuits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcomes {
    pub(super) tool: CircuitOutcome,
    pub(super) upstream: CircuitOutcome,
}

impl Circuits {
    pub(super) fn of_tool(tool: &Tool) -> Self {
        let state = tool.state();
        Self {
            tool: state.get_or_init(Circuit::default),
            upstream: state
                .upstream()
                .filter(|_| !upstream_settings(tool).disabled)
                .map(|upstream| upstream.get_or_init(Circuit::default)),
        }
    }
}

impl Permits {
    /// Takes the permits for an attempt of this call.
    pub(super) fn acquire(cx: &mut CallContext, settings: Breakers) -> Result<Self, ToolError> {
        let circuits = Circuits::of_tool(cx.tool());
        let start = cx.clock.now();
        let permit = circuits
            .tool
            .acquire(start)
            .map_err(|open| open.refuse(cx, Scope::Tool))?;
        emit_change(cx, Scope::Tool, permit.changed().cloned(), None);
        let mut permits = Self {
            start,
            tool: HeldPermit {
                circuit: circuits.tool,
                permit,
                settings: settings.tool,
            },
            upstream: None,
        };
        if let Some(circuit) = circuits.upstream {
            match circuit.acquire(start) {
                Ok(permit) => {
                    emit_change(cx, Scope::Upstream, permit.changed().cloned(), None);
                    permits.upstream = Some(HeldPermit {
                        circuit,
                        permit,
                        settings: settings.upstream,
                    });
                }
                Err(open) => {
                    let outcomes = Outcomes {
                        tool: CircuitOutcome::Unknown,
                        upstream: CircuitOutcome::Unknown,
                    };
                    // No pause begins with this outcome, so no jitter is drawn.
                    permits.report(cx, outcomes, (start, None), &Jitter::seeded(0));
                    return Err(open.refuse(cx, Scope::Upstream));
                }
            }
        }
        cx.explain(BreakerLayer::NAME, || "closed".to_owned());
        Ok(permits)
    }

    /// Returns the permits with the outcomes of the attempt. `end` is the time of its end, and the kind of its failure.
    pub(super) fn report(
        self,
        cx: &CallContext,
        outcomes: Outcomes,
        end: (Instant, Option<ErrorKind>),
        jitter: &Jitter,
    ) {
        let (now, kind) = end;
        let change = self.tool.report(outcomes.tool, now, jitter);
        emit_change(cx, Scope::Tool, change, kind);
        if let Some(upstream) = self.upstream {
            let change = upstream.report(outcomes.upstream, now, jitter);
            emit_change(cx, Scope::Upstream, change, kind);
        }
    }
}

impl HeldPermit {
    fn report(self, outcome: CircuitOutcome, now: Instant, jitter: &Jitter) -> Option<BreakerChange> {
        self.circuit
            .report(self.permit, outcome, now, &self.settings, jitter)
    }
}

impl CircuitOpen {
    /// Emits the event of a blocked attempt, and returns the error of its call.
    pub(super) fn refuse(self, cx: &mut CallContext, scope: Scope) -> ToolError {
        cx.observers.emit(&Event::breaker_rejected(cx, scope));
        let owner = match scope {
            Scope::Upstream => "the backend of ",
            _ => "",
        };
        let until = match self.retry_after {
            Some(wait) => format!("for another {}", format_duration(wait)),
            None => "until its probe is answered".to_owned(),
        };
        let message = format!(
            "{owner}`{}` is blocked by its circuit breaker {until}, after failures",
            cx.target.name()
        );
        cx.explain(BreakerLayer::NAME, || message.clone());
        let error = ToolError::new(ErrorKind::Unavailable, message).with_no_retry();
        match self.retry_after {
            Some(wait) => error.with_retry_after(wait),
            None => error,
        }
    }
}

/// Emits the change of a circuit's state, if there is one, with the kind of the failure that caused it.
fn emit_change(cx: &CallContext, scope: Scope, change: Option<BreakerChange>, kind: Option<ErrorKind>) {
    let Some(mut change) = change else { return };
    if let Some(kind) = kind {
        change.reason.push_str(&format!(", the last as `{kind}`"));
    }
    let change = &change;
    cx.observers.emit(&Event::breaker_changed(cx, scope, change));
}
