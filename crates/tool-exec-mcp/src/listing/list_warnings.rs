//! Warnings about a server's lists, found once for each list.

use std::{collections::HashSet, sync::Arc};

use mcp_client::ServerInfo;
use parking_lot::Mutex;
use raw_json::RawJson;
use tool_core::{Catalogue, Descriptor, ListWarning};
use tool_scan::{Finding, escape_line, scan, scan_text};

use super::entries::is_incomplete;

/// Maximum number of warnings kept per server.
const MAX: usize = 1000;
/// Maximum number of warnings logged per list.
const MAX_LOGGED: usize = 20;

/// Warnings about the present lists of a server.
#[derive(Debug, Default)]
pub(crate) struct ListWarnings(Mutex<WarningState>);

#[derive(Debug, Default)]
struct WarningState {
    /// Revision of the catalogue that was scanned; 0 if none was.
    revision: u64,
    /// Warnings about the server itself.
    of_server: Vec<ListWarning>,
    warnings: Vec<ListWarning>,
    logged: HashSet<ListWarning>,
}

impl ListWarnings {
    /// Scans the server's description of itself.
    pub(crate) fn scan_server_info(&self, server: &ServerInfo) {
        let text = server.instructions.as_ref().and_then(RawJson::string);
        let of_instructions = text.iter().flat_map(|text| scan_text(text));
        let of_name = server.implementation.iter().flat_map(scan);
        let warnings = of_instructions
            .map(|finding| about("the server's `instructions`", &finding))
            .chain(of_name.map(|finding| about("the server's `serverInfo`", &finding)));
        self.state().of_server = warnings.collect();
    }

    /// Returns all warnings. Scans the catalogue unless it was scanned before, and logs new warnings.
    pub(crate) fn warnings_for(&self, server: &str, catalogue: &Catalogue) -> Vec<ListWarning> {
        let mut state = self.state();
        if state.revision != catalogue.revision {
            state.revision = catalogue.revision;
            let descriptors = catalogue.tools.iter().chain(&catalogue.others);
            let found = descriptors.flat_map(of_descriptor);
            let (incomplete, others): (Vec<_>, Vec<_>) = catalogue
                .warnings
                .iter()
                .cloned()
                .partition(|warning| is_incomplete(warning.kind));
            // Suspicious text comes first: it must not be cut off, nor hidden behind missing descriptions.
            let warnings = others.into_iter().chain(found).chain(incomplete);
            state.warnings = warnings.take(MAX).collect();
        }
        let warnings: Vec<_> = state.of_server.iter().chain(&state.warnings).cloned().collect();
        state.log(server, &warnings);
        warnings
    }

    fn state(&self) -> parking_lot::MutexGuard<'_, WarningState> {
        self.0.lock()
    }
}

impl WarningState {
    fn log(&mut self, server: &str, warnings: &[ListWarning]) {
        let mut n_new = 0;
        for warning in warnings {
            if self.logged.contains(warning) {
                continue;
            }
            n_new += 1;
            if n_new <= MAX_LOGGED {
                tracing::warn!(server, kind = warning.kind, "{warning}");
            }
        }
        if n_new > MAX_LOGGED {
            let more = n_new - MAX_LOGGED;
            tracing::warn!(
                server,
                "{more} more warnings about its lists; `toolplane doctor` shows them"
            );
        }
        if n_new > 0 {
            self.logged = warnings.iter().cloned().collect();
        }
    }
}

fn about(subject: &str, finding: &Finding) -> ListWarning {
    ListWarning::new(None, None, finding.kind.as_str(), format!("{subject}: {finding}"))
}

fn of_descriptor(descriptor: &Arc<Descriptor>) -> impl Iterator<Item = ListWarning> + use<> {
    let findings = descriptor.definition.as_ref().map(scan).unwrap_or_default();
    let feature = descriptor.feature;
    let name = Arc::clone(&descriptor.name);
    findings.into_iter().map(move |finding| {
        ListWarning::new(
            Some(feature),
            Some(escape_line(&name).into_owned()),
            finding.kind.as_str(),
            finding.to_string(),
        )
    })
}
