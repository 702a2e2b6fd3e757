use tool_core::{Event, Observe, SourceChange, SourceState};
use tracing::{debug, info, warn};

use crate::milliseconds::milliseconds;

/// Writes to the log how sources of tools fare: one that was ready and has failed as a warning, the rest as information.
/// What a start came to is told as well by whoever asked for it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SourceLog;

impl Observe for SourceLog {
    fn observe(&self, event: &Event<'_>) {
        if let Event::SourceChanged { change } = event {
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
        (_, SourceState::Starting) => debug!(%source, n_attempts, "starting"),
        (SourceState::Starting, SourceState::Ready) => info!(%source, n_attempts, took_ms, "ready"),
        (SourceState::Ready, SourceState::Failed(reason)) => warn!(%source, "failed: {reason}"),
        (_, SourceState::Failed(reason)) => info!(%source, n_attempts, took_ms, "did not start: {reason}"),
        (_, to) => debug!(%source, "{to}"),
    }
}
