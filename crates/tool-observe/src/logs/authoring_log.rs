use tool_core::{Event, Observe};
use tracing::info;

/// Target of log lines, which operators filter by.
const TARGET: &str = "tool_observe::authoring_log";

/// Logs what agents make: drafts, tests, publications and proposed servers.
#[derive(Debug, Clone, Copy, Default)]
pub struct AuthoringLog;

impl Observe for AuthoringLog {
    fn observe(&self, event: &Event<'_>) {
        let Event::Authored { change, .. } = event else {
            return;
        };
        let (action, tool, version) = (change.action.as_str(), &change.tool, &change.version);
        let (principal, tenant) = (&change.principal, &change.tenant);
        let digest = raw_json::hex(&change.digest);
        info!(target: TARGET, action, %tool, version, %principal, %tenant, digest, "{action} by `{principal}`: `{tool}` {version}");
    }
}
