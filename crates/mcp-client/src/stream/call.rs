use parking_lot::{Mutex, MutexGuard};
use raw_json::RawJson;
use tokio::sync::oneshot;

use crate::{ClientError, exchange::Exchange};

type Answer = Result<RawJson, ClientError>;

/// Request that waits for its response.
pub(super) struct Call {
    pub(super) id: u64,
    pub(super) exchange: Exchange,
    /// `true` if its response opens the connection in the legacy era.
    pub(super) opens: bool,
    state: Mutex<State>,
}

struct State {
    /// Frame until the writer takes it. A caller that leaves takes it back, so that it is never sent.
    frame: Option<Vec<u8>>,
    answer: Option<oneshot::Sender<Answer>>,
}

impl Call {
    pub(super) fn new(
        id: u64,
        frame: Vec<u8>,
        exchange: Exchange,
        opens: bool,
    ) -> (Self, oneshot::Receiver<Answer>) {
        let (sender, receiver) = oneshot::channel();
        let state = Mutex::new(State {
            frame: Some(frame),
            answer: Some(sender),
        });
        let call = Self {
            id,
            exchange,
            opens,
            state,
        };
        (call, receiver)
    }

    pub(super) fn take_frame(&self) -> Option<Vec<u8>> {
        self.state().frame.take()
    }

    /// Takes the frame to send it.
    pub(super) fn begin_send(&self) -> Option<Vec<u8>> {
        // The request is marked as sent under the lock: a caller that leaves finds either the frame or the mark.
        let mut state = self.state();
        if state.frame.is_some() {
            self.exchange.mark_sent();
        }
        state.frame.take()
    }

    pub(super) fn was_sent(&self) -> bool {
        self.exchange.was_sent()
    }

    /// `true` while no outcome was delivered.
    pub(super) fn is_waiting(&self) -> bool {
        self.state().answer.is_some()
    }

    /// Delivers the outcome to the caller. Later outcomes are dropped.
    pub(super) fn finish(&self, outcome: Answer) {
        let sender = self.state().answer.take();
        if let Some(sender) = sender {
            let sent = self.was_sent();
            // Fails if the caller has left.
            let _ = sender.send(outcome.map_err(|error| error.with_sent(sent)));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}
