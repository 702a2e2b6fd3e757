use std::{fmt, sync::Arc};

use mcp_wire::{meta_key, method};
use raw_json::{JsonKind, RawJson};

use super::event_sender::EventSender;

/// Reports progress of a request to the client that asked for it, under its own token.
///
/// Reports arrive in order and before the response. A report is dropped if it comes after the response, does not move
/// forward, is larger than 64 KiB, or finds the channel to the client full: progress never blocks. A clone reports for the
/// same request.
#[derive(Clone, Default)]
pub struct ProgressReporter(pub(crate) Option<Arc<EventSender>>);

/// Maximum size of one report, in bytes.
const MAX_REPORT: usize = 64 * 1024;

impl ProgressReporter {
    /// Returns `true` if the client asked for progress. Otherwise there is no need to build reports.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.0.as_ref().is_some_and(|sender| sender.token.is_some())
    }

    /// Sends a report: an object with `progress`, and optionally `total` and `message`. Its `progressToken` is inserted or
    /// replaced.
    pub fn report(&self, report: &RawJson) {
        let Some(sender) = &self.0 else { return };
        let Some(token) = &sender.token else { return };
        if report.len() > MAX_REPORT || report.kind() != JsonKind::Object {
            return;
        }
        let Some(amount) = report.get("progress").and_then(|value| value.to::<f64>().ok()) else {
            return;
        };
        sender.send_progress(amount, || {
            let params = report
                .with_members(&[(meta_key::PROGRESS_TOKEN, token.clone())])
                .expect("a report is an object");
            mcp_wire::notification(method::PROGRESS, Some(&params))
        });
    }
}

impl fmt::Debug for ProgressReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgressReporter")
            .field("is_wanted", &self.is_wanted())
            .finish()
    }
}
