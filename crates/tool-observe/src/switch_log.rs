use tool_core::{Event, Observe};
use tracing::warn;

/// Writes to the log which tools operators switch off and on by hand.
#[derive(Debug, Clone, Copy, Default)]
pub struct SwitchLog;

impl Observe for SwitchLog {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Switched { tool, is_on, reason } = *event {
            let action = if is_on { "enabled" } else { "disabled" };
            warn!(tool, action, reason, "an operator {action} `{tool}`");
        }
    }
}
