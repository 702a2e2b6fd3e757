use tool_core::{BreakerState, CallContext, Event, Observe, Scope};
use tracing::{info, warn};

/// Writes to the log when a circuit breaker changes its state: the opening of one as a warning, the rest as information.
#[derive(Debug, Clone, Copy, Default)]
pub struct BreakerLog;

impl Observe for BreakerLog {
    fn observe(&self, event: &Event<'_>) {
        let Event::BreakerChanged { cx, scope, change } = event else {
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
                of, %tool, upstream, from, to, reason, pause_ms,
                "{what} `{name}` is held back for {pause:.1?}: {reason}"
            ),
            (BreakerState::Open, None) => warn!(
                of, %tool, upstream, from, to, reason,
                "{what} `{name}` is held back: {reason}"
            ),
            _ => info!(
                of, %tool, upstream, from, to, reason,
                "the breaker of {what} `{name}` is {}: {reason}",
                to.replace('_', " ")
            ),
        }
    }
}

fn upstream(cx: &CallContext) -> Option<&str> {
    cx.tool().state().upstream().map(|upstream| &**upstream.name())
}
