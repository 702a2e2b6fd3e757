use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use raw_json::RawJson;
use tokio::sync::oneshot;

use crate::{Error, exchange::Exchange};

type Answer = Result<RawJson, Error>;

/// A request that waits for its answer.
pub(super) struct Call {
    pub(super) id: u64,
    pub(super) exchange: Exchange,
    /// The frame until the writer takes it: a caller that leaves before takes it back, so it is never sent.
    frame: Mutex<Option<Bytes>>,
    answer: Mutex<Option<oneshot::Sender<Answer>>>,
}

impl Call {
    pub(super) fn new(id: u64, frame: Bytes, exchange: Exchange) -> (Self, oneshot::Receiver<Answer>) {
        let (sender, receiver) = oneshot::channel();
        (
            Self {
                id,
                exchange,
                frame: Mutex::new(Some(frame)),
                answer: Mutex::new(Some(sender)),
            },
            receiver,
        )
    }

    pub(super) fn take_frame(&self) -> Option<Bytes> {
        self.frame.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Takes the frame to send it.
    pub(super) fn begin_send(&self) -> Option<Bytes> {
        // Marked while the frame is locked: a caller that leaves finds either the frame or the mark.
        let mut frame = self.frame.lock().unwrap_or_else(PoisonError::into_inner);
        if frame.is_some() {
            self.exchange.mark_sent();
        }
        frame.take()
    }

    pub(super) fn was_sent(&self) -> bool {
        self.exchange.was_sent()
    }

    /// Whether no outcome was handed over yet.
    pub(super) fn is_waiting(&self) -> bool {
        self.answer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }

    /// Hands the outcome to the caller; what comes second is dropped.
    pub(super) fn finish(&self, outcome: Answer) {
        let sender = self.answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            let sent = self.was_sent();
            // A caller that has left wants nothing.
            let _ = sender.send(outcome.map_err(|error| error.sent(sent)));
        }
    }
}
