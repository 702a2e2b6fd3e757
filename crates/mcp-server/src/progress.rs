use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use mcp_wire::{meta_key, method};
use raw_json::{Kind, RawJson};
use tokio::sync::mpsc;

/// Where reports of a request's progress go: to the client that asked for them, under its own token.
///
/// Reports arrive in the order in which they are made and before the answer. One that comes after the answer, does
/// not move forward, is larger than 64 KiB, or finds the way to the client full, is dropped: progress never blocks.
/// A clone reports for the same request.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<Inner>>);

struct Inner {
    token: RawJson,
    state: Mutex<State>,
}

struct State {
    /// Nothing once the request is answered.
    out: Option<mpsc::Sender<Vec<u8>>>,
    last: f64,
}

const MAX_REPORT: usize = 64 * 1024;

impl Progress {
    pub(crate) fn new(token: RawJson, out: mpsc::Sender<Vec<u8>>) -> Self {
        Self(Some(Arc::new(Inner {
            token,
            state: Mutex::new(State {
                out: Some(out),
                last: f64::NEG_INFINITY,
            }),
        })))
    }

    /// Whether the client asked for progress: if not, reports need not even be made.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Passes on a report: an object with `progress` and perhaps `total` and `message`. Its `progressToken` is put
    /// in or replaced.
    pub fn report(&self, report: &RawJson) {
        let Some(inner) = &self.0 else { return };
        if report.len() > MAX_REPORT || report.kind() != Kind::Object {
            return;
        }
        let Some(amount) = report.get("progress").and_then(|value| value.to::<f64>().ok()) else {
            return;
        };
        let mut state = inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        if amount <= state.last {
            return;
        }
        let Some(out) = &state.out else { return };
        let params = report
            .with_members(&[(meta_key::PROGRESS_TOKEN, inner.token.clone())])
            .expect("a report is an object");
        // Sent under the lock: after `close` has had it, nothing of this request can follow the answer.
        if out
            .try_send(mcp_wire::notification(method::PROGRESS, Some(&params)))
            .is_ok()
        {
            state.last = amount;
        }
    }

    /// Ends the request's progress: called right before the answer is sent.
    pub(crate) fn close(&self) {
        if let Some(inner) = &self.0 {
            inner.state.lock().unwrap_or_else(PoisonError::into_inner).out = None;
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress")
            .field("is_wanted", &self.is_wanted())
            .finish()
    }
}
