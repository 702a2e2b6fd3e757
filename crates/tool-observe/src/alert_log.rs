use tool_core::{Alert, AlertPhase, Event, Observe};
use tracing::{info, warn};

/// Writes alerts to the log: what begins as a warning, which a process that stays shows, and its end as information.
/// A command that ends says itself what went wrong.
#[derive(Debug, Clone, Copy, Default)]
pub struct AlertLog;

impl Observe for AlertLog {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Alert { alert } = event {
            log(alert);
        }
    }
}

fn log(alert: &Alert) {
    let (kind, phase) = (alert.kind.as_str(), alert.phase.as_str());
    let subject = alert.subject.name();
    match alert.phase {
        AlertPhase::Firing => {
            warn!(alert = kind, phase, subject = %subject, "{}: {}", alert.subject, alert.message);
        }
        AlertPhase::Resolved => {
            info!(alert = kind, phase, subject = %subject, "{}: {}", alert.subject, alert.message);
        }
    }
}
