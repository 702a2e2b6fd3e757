use std::fmt::Write as _;

use tool_core::{DefinitionState, Event, Observe};
use tracing::warn;

/// Target of log lines, which operators filter by.
const TARGET: &str = "tool_observe::definition_log";

/// Maximum number of differences in one line.
const MAX_CHANGES: usize = 5;

/// Logs definitions that are withheld because they are new or changed, and definitions that an operator accepted.
#[derive(Debug, Clone, Copy, Default)]
pub struct DefinitionLog;

impl Observe for DefinitionLog {
    fn observe(&self, event: &Event<'_>) {
        let Event::DefinitionChanged { change, .. } = event else {
            return;
        };
        let (source, name, feature) = (&change.source, &change.name, change.feature.as_str());
        let (state, digest) = (change.state.as_str(), raw_json::hex(&change.digest));
        match &change.state {
            DefinitionState::Accepted { by } => {
                warn!(target: TARGET, %source, feature, %name, state, digest, %by, "`{by}` accepted the definition of `{name}`");
            }
            DefinitionState::New => {
                warn!(target: TARGET, %source, feature, %name, state, digest, "{feature} withheld: `{name}` of `{source}` is new, and only accepted definitions are offered");
            }
            _ => {
                let shown = change.changes.iter().take(MAX_CHANGES).map(ToString::to_string);
                let mut changes = shown.collect::<Vec<_>>().join("; ");
                let n_more = change.changes.len().saturating_sub(MAX_CHANGES);
                if n_more > 0 {
                    // Writing to a string cannot fail.
                    let _ = write!(changes, "; and {n_more} more");
                }
                warn!(target: TARGET, %source, feature, %name, state, digest, "{feature} withheld: the definition of `{name}` of `{source}` has changed: {changes}");
            }
        }
    }
}
