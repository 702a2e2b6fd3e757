use tool_core::{BreakerState, CallContext, Event, Observe, Scope};
use tracing::{info, warn};

/// Target of log lines, which operators filter by.
const TARGET: &str = "tool_observe::breaker_log";

/// Logs state changes of circuit breakers: the opening at level `warn`, others at level `info`.
#[derive(Debug, Clone, Copy, Default)]
pub struct BreakerLog;

impl Observe for BreakerLog {
    fn observe(&self, event: &Event<'_>) {
        let Event::BreakerChanged {
            cx, scope, change, ..
        } = event
        else {
            return;
        };
        let (tool, upstream) = (cx.tool().name(), upstream(cx));
        let (from, to, of) = (change.from.as_str(), change.to.as_str(), scope.as_str());
        let pause_ms = change
            .pause
            .map(|pause| u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
        let (what, name) = match (scope, upstream) {
            (Scope::Upstream, Some(upstream)) => ("the upstream", upstream),
            _ => ("the tool", &**tool),
        };
        let reason = &change.reason;
        match (change.to, change.pause) {
            (BreakerState::Open, Some(pause)) => warn!(
                target: TARGET, of, %tool, upstream, from, to, reason, pause_ms,
                "the breaker of {what} `{name}` is open for {pause:.1?}: {reason}"
            ),
            (BreakerState::Open, None) => warn!(
                target: TARGET, of, %tool, upstream, from, to, reason,
                "the breaker of {what} `{name}` is open: {reason}"
            ),
            _ => info!(
                target: TARGET, of, %tool, upstream, from, to, reason,
                "the breaker of {what} `{name}` is {}: {reason}",
                to.replace('_', " ")
            ),
        }
    }
}

fn upstream(cx: &CallContext) -> Option<&str> {
    cx.tool().state().upstream().map(|upstream| &**upstream.name())
}
