use tool_core::{Alert, AlertPhase, Event, Observe};
use tracing::{info, warn};

/// Target of log lines, which operators filter by.
const TARGET: &str = "tool_observe::alert_log";

/// Logs alerts: the start at level `warn`, the end at level `info`. It is for processes that keep running; a command that
/// ends reports errors itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct AlertLog;

impl Observe for AlertLog {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Alert { alert, .. } = event {
            log(alert);
        }
    }
}

fn log(alert: &Alert) {
    let (kind, phase) = (alert.kind.as_str(), alert.phase.as_str());
    let subject = alert.subject.name();
    match alert.phase {
        AlertPhase::Firing => {
            warn!(target: TARGET, alert = kind, phase, subject = %subject, "{}: {}", alert.subject, alert.message);
        }
        AlertPhase::Resolved => {
            info!(target: TARGET, alert = kind, phase, subject = %subject, "{}: {}", alert.subject, alert.message);
        }
    }
}
