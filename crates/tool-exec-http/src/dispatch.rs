//! When a request counts as sent.
//!
//! The client tells of a connection only through what it does with a request: it asks for the body once there is a
//! connection to write to, right before anything is written. So:
//!
//! - a request with a body is marked when its body is first asked for;
//! - a request without one is marked when its exchange ends in any way but a failure to connect;
//! - with HTTP/2 (only over TLS) the head may leave before the body is asked for, so what ends there in any way but a
//!   failure to connect is marked as well.
//!
//! A refused connection, a failed TLS handshake, an unknown or refused host and a connection that takes too long leave
//! the mark as it was. In doubt a request counts as sent.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tool_core::{Dispatch, DispatchState};

/// Marks the dispatch of one request, at the latest when it is dropped.
pub(crate) struct Mark {
    dispatch: Arc<Dispatch>,
    /// Whether the body alone tells: over HTTP/1 with a body.
    by_body: bool,
    unsent: bool,
}

impl Mark {
    pub(crate) fn new(dispatch: Arc<Dispatch>, by_body: bool) -> Self {
        Self {
            dispatch,
            by_body,
            unsent: false,
        }
    }

    /// Notes that there was no connection to send anything over.
    pub(crate) fn not_connected(mut self) {
        self.unsent = true;
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        if !self.unsent && !self.by_body {
            self.dispatch.sent();
        }
    }
}

/// A request's body that marks the request as sent when it is first asked for.
pub(crate) struct MarkingBody {
    left: Option<Bytes>,
    dispatch: Arc<Dispatch>,
}

impl MarkingBody {
    pub(crate) fn new(body: Bytes, dispatch: Arc<Dispatch>) -> Self {
        Self {
            left: Some(body),
            dispatch,
        }
    }
}

impl Body for MarkingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.dispatch.state() == DispatchState::NotSent {
            self.dispatch.sent();
        }
        Poll::Ready(self.left.take().map(|body| Ok(Frame::data(body))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.as_ref().map_or(0, |body| body.len() as u64))
    }
}
