use std::borrow::Cow;

use tool_core::{AccessDecision, AccessVerdict, Event, Observe, hide_credentials};
use tool_scan::escape_line;
use tracing::{info, warn};

/// Target of log lines, which operators filter by.
const TARGET: &str = "tool_observe::access_log";

/// Maximum length of the name of a resource in a line, in characters.
const MAX_RESOURCE: usize = 256;

/// Logs the accesses that sandboxes decide about: allowed ones at level `info`, denied ones at `warn`.
#[derive(Debug, Clone, Copy, Default)]
pub struct AccessLog;

impl Observe for AccessLog {
    fn observe(&self, event: &Event<'_>) {
        if let Event::AccessDecided { access, .. } = event {
            log(access);
        }
    }
}

fn log(access: &AccessDecision) {
    let (subject, name) = (access.subject.kind(), access.subject.name());
    let call = access.call.as_ref();
    let correlation_id = call.map(|call| tracing::field::display(call.correlation_id));
    let principal = call.map(|call| &*call.principal);
    let tenant = call.map(|call| &*call.tenant);
    let kind = access.resource.kind();
    let resource = shown(&access.resource.to_string());
    let verdict = access.verdict.as_str();
    match &access.verdict {
        AccessVerdict::Denied(reason) => warn!(
            target: TARGET,
            subject, %name, correlation_id, principal, tenant, kind, resource, verdict, reason,
            "the sandbox denied {subject} `{name}` access to {kind} `{resource}`: {reason}"
        ),
        _ => info!(
            target: TARGET,
            subject, %name, correlation_id, principal, tenant, kind, resource, verdict,
            "the sandbox allowed {subject} `{name}` access to {kind} `{resource}`"
        ),
    }
}

/// Returns the name of a resource on one line, shortened, and without credentials: a program may put anything into it.
fn shown(resource: &str) -> String {
    let hidden: Cow<'_, str> = hide_credentials(resource);
    let mut shown: String = escape_line(&hidden).chars().take(MAX_RESOURCE + 1).collect();
    if let Some((at, _)) = shown.char_indices().nth(MAX_RESOURCE) {
        shown.truncate(at);
        shown.push('…');
    }
    shown
}
