use std::{
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use mcp_wire::sse_event;

use crate::{
    client::Outgoing,
    streamable_http::{
        endpoint::{Exchange, Step},
        session::ResumableStream,
    },
};

/// Stream of events that answers a request. The client can resume it if it has a session.
pub(super) struct ExchangeStream {
    /// Event that is sent before all others.
    first: Option<Bytes>,
    /// `None` after the last event.
    exchange: Option<Exchange>,
    resumable: Option<Arc<ResumableStream>>,
}

impl ExchangeStream {
    /// Creates the stream of an exchange whose first event is `first`.
    pub(super) fn new(first: Outgoing, exchange: Exchange, resumable: Option<Arc<ResumableStream>>) -> Self {
        let mut stream = Self {
            first: None,
            exchange: Some(exchange),
            resumable,
        };
        stream.first = stream.event(first);
        stream
    }

    /// Returns the next event, or `None` at the end.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        while let Some(exchange) = &mut self.exchange {
            match ready!(exchange.poll_step(cx)) {
                Step::Event(event) => {
                    if let Some(event) = self.event(event) {
                        return Poll::Ready(Some(event));
                    }
                }
                Step::End(reply) => {
                    let last = reply.map(|reply| self.frame(&reply.frame));
                    if let Some(resumable) = &self.resumable {
                        resumable.complete();
                    }
                    self.exchange = None;
                    return Poll::Ready(last);
                }
            }
        }
        Poll::Ready(None)
    }

    /// Returns `true` if no event follows.
    pub(super) fn has_ended(&self) -> bool {
        self.first.is_none() && self.exchange.is_none()
    }

    fn event(&mut self, event: Outgoing) -> Option<Bytes> {
        match event {
            Outgoing::Frame(frame) => Some(self.frame(&frame)),
            Outgoing::Pause(retry) => {
                // A stream that cannot be resumed is not paused.
                let last = self.resumable.as_ref()?.prime(retry);
                // The call goes on without this stream.
                self.park();
                Some(last)
            }
        }
    }

    fn frame(&self, frame: &[u8]) -> Bytes {
        match &self.resumable {
            Some(resumable) => resumable.push(frame),
            None => sse_event(frame, None, None).into(),
        }
    }

    /// Has a call go on whose stream ends before it does, if the client can resume the stream.
    fn park(&mut self) {
        if let (Some(exchange), Some(resumable)) = (self.exchange.take(), self.resumable.take()) {
            exchange.park(&resumable);
        }
    }
}

impl Drop for ExchangeStream {
    fn drop(&mut self) {
        self.park();
    }
}
