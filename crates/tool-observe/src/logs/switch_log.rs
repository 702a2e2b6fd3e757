use tool_core::{Event, Observe};
use tracing::warn;

/// Target of log lines, which operators filter by.
const TARGET: &str = "tool_observe::switch_log";

/// Logs the tools that operators switch on and off.
#[derive(Debug, Clone, Copy, Default)]
pub struct SwitchLog;

impl Observe for SwitchLog {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Switched {
            tool, is_on, reason, ..
        } = *event
        {
            let action = if is_on { "enabled" } else { "disabled" };
            warn!(target: TARGET, tool, action, reason, "an operator {action} `{tool}`");
        }
    }
}
