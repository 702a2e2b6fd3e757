use std::sync::Arc;

use parking_lot::Mutex;
use raw_json::RawJson;
use tokio::sync::mpsc;

/// What a frame begins with that is no message, but the wish to pause a stream for so many milliseconds.
pub(crate) const PAUSE: &[u8] = b"pause ";

/// The way on which a client is told something while its request is worked on, and before its answer.
#[derive(Debug)]
pub(crate) struct Way {
    /// The token under which the client wants progress, if it does.
    pub(crate) token: Option<RawJson>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Nothing once the request is answered.
    out: Option<mpsc::Sender<Vec<u8>>>,
    /// The last amount of progress that was told.
    last: f64,
}

/// Why a message did not get onto its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// The client does not read what waits for it.
    Full,
    /// The request is answered, or the client is gone.
    Closed,
}

impl Way {
    pub(crate) fn new(token: Option<RawJson>, out: mpsc::Sender<Vec<u8>>) -> Arc<Self> {
        Arc::new(Self {
            token,
            state: Mutex::new(State {
                out: Some(out),
                last: f64::NEG_INFINITY,
            }),
        })
    }

    /// Sends a message, unless the request is answered.
    pub(crate) fn send(&self, frame: Vec<u8>) -> Result<(), Blocked> {
        // Sent under the lock: after `close` has had it, nothing of this request can follow the answer.
        let state = self.state.lock();
        let out = state.out.as_ref().ok_or(Blocked::Closed)?;
        out.try_send(frame).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Blocked::Full,
            mpsc::error::TrySendError::Closed(_) => Blocked::Closed,
        })
    }

    /// Sends a report of progress if it moves forward.
    pub(crate) fn report(&self, amount: f64, frame: impl FnOnce() -> Vec<u8>) {
        let mut state = self.state.lock();
        if amount <= state.last {
            return;
        }
        if let Some(out) = &state.out
            && out.try_send(frame()).is_ok()
        {
            state.last = amount;
        }
    }

    /// Waits until nobody is there any more to read what is sent.
    pub(crate) async fn lost(&self) {
        let out = {
            let state = self.state.lock();
            state.out.as_ref().map(mpsc::Sender::downgrade)
        };
        // A strong sender would keep the way open after the answer.
        let Some(out) = out.and_then(|out| out.upgrade()) else {
            return;
        };
        out.closed().await;
    }

    /// Ends the way: called right before the answer is sent.
    pub(crate) fn close(&self) {
        self.state.lock().out = None;
    }
}
