//! Detection of the moment at which a request is sent.
//!
//! The client does not report when it has a connection. But once it has one, and right before it writes the head, it polls
//! the body, over HTTP/1 and over HTTP/2. So every request has a body that marks the request as sent when it is polled.
//!
//! A refused connection, a failed TLS handshake, an unknown or refused host, a connect timeout and a pooled connection that
//! turns out to be closed all come before that and leave the request unsent. If another version of the client polls earlier,
//! requests count as sent too early, never too late.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use tool_core::Dispatch;

/// Body of a request, which may be empty. Marks the request as sent when it is first polled.
pub(crate) struct MarkingBody {
    body: Full<Bytes>,
    dispatch: Arc<Dispatch>,
}

impl MarkingBody {
    pub(crate) fn new(body: Option<Bytes>, dispatch: Arc<Dispatch>) -> Self {
        let body = Full::new(body.unwrap_or_default());
        Self { body, dispatch }
    }
}

impl Body for MarkingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.dispatch.sent();
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.dispatch.sent();
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
