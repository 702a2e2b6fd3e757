use std::{fmt, sync::Arc};

use mcp_wire::{meta_key, method};
use raw_json::{JsonKind, RawJson};

use crate::way::Way;

/// Where reports of a request's progress go: to the client that asked for them, under its own token.
///
/// Reports arrive in the order in which they are made and before the answer. One that comes after the answer, does
/// not move forward, is larger than 64 KiB, or finds the way to the client full, is dropped: progress never blocks.
/// A clone reports for the same request.
#[derive(Clone, Default)]
pub struct ProgressReporter(pub(crate) Option<Arc<Way>>);

const MAX_REPORT: usize = 64 * 1024;

impl ProgressReporter {
    /// Whether the client asked for progress: if not, reports need not even be made.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.0.as_ref().is_some_and(|way| way.token.is_some())
    }

    /// Passes on a report: an object with `progress` and perhaps `total` and `message`. Its `progressToken` is put
    /// in or replaced.
    pub fn report(&self, report: &RawJson) {
        let Some(way) = &self.0 else { return };
        let Some(token) = &way.token else { return };
        if report.len() > MAX_REPORT || report.kind() != JsonKind::Object {
            return;
        }
        let Some(amount) = report.get("progress").and_then(|value| value.to::<f64>().ok()) else {
            return;
        };
        way.report(amount, || {
            let params = report
                .with_members(&[(meta_key::PROGRESS_TOKEN, token.clone())])
                .expect("a report is an object");
            mcp_wire::notification(method::PROGRESS, Some(&params))
        });
    }
}

impl fmt::Debug for ProgressReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress")
            .field("is_wanted", &self.is_wanted())
            .finish()
    }
}
