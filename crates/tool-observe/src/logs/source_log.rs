use tool_core::{Event, Observe, SourceChange, SourceState};
use tracing::{debug, info, warn};

use crate::milliseconds::milliseconds;

/// Target of log lines, which operators filter by.
const TARGET: &str = "tool_observe::source_log";

/// Logs changes of the lifecycle of sources. The failure of a ready source is a warning; other changes are at level `info`
/// or `debug`. The result of a start is also reported to the caller that needed it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SourceLog;

impl Observe for SourceLog {
    fn observe(&self, event: &Event<'_>) {
        if let Event::SourceChanged { change, .. } = event {
            log(change);
        }
    }
}

fn log(change: &SourceChange) {
    let SourceChange {
        source,
        from,
        to,
        after,
        n_attempts,
        ..
    } = change;
    let took_ms = milliseconds(*after);
    match (from, to) {
        (_, SourceState::Starting) => debug!(target: TARGET, %source, n_attempts, "starting"),
        (SourceState::Starting, SourceState::Ready) => {
            info!(target: TARGET, %source, n_attempts, took_ms, "ready");
        }
        (SourceState::Ready, SourceState::Failed(reason)) => {
            warn!(target: TARGET, %source, "failed: {reason}");
        }
        (_, SourceState::Failed(reason)) => {
            info!(target: TARGET, %source, n_attempts, took_ms, "did not start: {reason}");
        }
        (_, to) => debug!(target: TARGET, %source, "{to}"),
    }
}
